//! The marker of a store that is the target of an unfinished copy: a row in the table `copying`.

/// The query that reads the marker of an unfinished copy.
pub(crate) const MARK: &str = "SELECT source, copied FROM copying";

/// Returns the error message for a store that cannot be used because it is the target of an
/// unfinished copy.
pub(crate) fn unfinished(source: &str, copied: i64) -> String {
    format!(
        "it is an unfinished copy of `{source}`, with {copied} rows so far\nhint: run the same \
         `wattle store copy FROM TO` again, or delete it"
    )
}
