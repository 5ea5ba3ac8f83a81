//! Keyword search that ranks documents without an index on disk.

use rusqlite::{Connection, params};

use super::query::{Query, parts};
use super::rank::POOL;

/// The table of the temporary index, with its columns and its tokenizer. The transaction stays open
/// until the index is dropped. Otherwise, SQLite would merge a part of the index for each document.
const TABLE: &str = "BEGIN;
    CREATE VIRTUAL TABLE words USING fts5 (
        text, parts, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
    )";

/// A temporary index of documents in memory. The ranking depends on these documents alone.
///
/// The index keeps the words of the documents, but not their texts. It usually needs about half as
/// much memory as the texts.
pub struct TextIndex(Connection);

impl TextIndex {
    /// Creates an empty index.
    ///
    /// # Errors
    /// If SQLite cannot allocate memory.
    pub fn new() -> rusqlite::Result<TextIndex> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(TABLE)?;
        Ok(TextIndex(connection))
    }

    /// Adds a document.
    ///
    /// # Errors
    /// If SQLite cannot allocate memory.
    pub fn add(&self, id: i64, text: &str) -> rusqlite::Result<()> {
        let insert = "INSERT INTO words (rowid, text, parts) VALUES (?1, ?2, ?3)";
        self.0.prepare_cached(insert)?.execute(params![id, text, parts(text)])?;
        Ok(())
    }

    /// Returns the ids and scores of at most [`POOL`] documents that match words in a query, best
    /// first.
    ///
    /// # Errors
    /// If SQLite cannot allocate memory.
    pub fn rank(&self, query: &Query) -> rusqlite::Result<Vec<(i64, f64)>> {
        let sql = format!(
            "SELECT rowid, bm25(words, 1.0, 0.7) AS score FROM words WHERE words MATCH ?1
             ORDER BY score, rowid LIMIT {POOL}"
        );
        let mut statement = self.0.prepare(&sql)?;
        // A lower BM25 value is better, so the score is negated.
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, -row.get::<_, f64>(1)?));
        statement.query_map([query.expression()], row)?.collect()
    }
}
