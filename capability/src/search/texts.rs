//! Keyword search that ranks documents without an index on disk.

use rusqlite::{Connection, params};

use super::query::{Query, parts};
use super::rank::POOL;

/// The table of the temporary index, with its columns and its tokenizer.
const TABLE: &str = "CREATE VIRTUAL TABLE words USING fts5 (text, parts, content = '', tokenize = \
                     'porter unicode61 remove_diacritics 2')";

/// Returns the ids and scores of at most [`POOL`] documents that match words in a query, best
/// first. The index is in memory and is dropped at the end of the call.
///
/// # Errors
/// If SQLite cannot allocate memory.
pub fn rank_texts<'a>(
    query: &Query,
    texts: impl IntoIterator<Item = (i64, &'a str)>,
) -> rusqlite::Result<Vec<(i64, f64)>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLE)?;
    let mut insert =
        connection.prepare("INSERT INTO words (rowid, text, parts) VALUES (?1, ?2, ?3)")?;
    for (id, text) in texts {
        insert.execute(params![id, text, parts(text)])?;
    }
    let sql = format!(
        "SELECT rowid, bm25(words, 1.0, 0.7) AS score FROM words WHERE words MATCH ?1
         ORDER BY score, rowid LIMIT {POOL}"
    );
    let mut statement = connection.prepare(&sql)?;
    // A lower BM25 value is better, so the score is negated.
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, -row.get::<_, f64>(1)?));
    statement.query_map([query.expression()], row)?.collect()
}
