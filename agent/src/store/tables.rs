//! The tables that contain the content of a store, and their columns.
//!
//! Locks, the processes that hold them, and requests to these processes are not content.

use super::db::Value;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A 64-bit integer.
    Integer,
    /// A UTF-8 string. PostgreSQL stores strings that may contain a zero byte as bytes.
    Text,
    /// Any bytes.
    Bytes,
}
use Kind::{Bytes, Integer, Text};

/// A table with its columns.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The columns. The key's columns come first, in key order.
    pub(super) columns: &'static [(&'static str, Kind)],
    /// Number of columns in the key. Both engines sort rows by their keys in the same order.
    pub(super) keys: usize,
    /// If true, the key is a number that the database assigns.
    pub(super) is_numbered: bool,
}

const fn table(name: &'static str, keys: usize, columns: &'static [(&'static str, Kind)]) -> Table {
    Table { name, columns, keys, is_numbered: false }
}

const fn numbered(name: &'static str, columns: &'static [(&'static str, Kind)]) -> Table {
    Table { name, columns, keys: 1, is_numbered: true }
}

/// The tables, each listed after the tables that its rows refer to.
pub(super) const TABLES: &[Table] = &[
    table(
        "session",
        2,
        &[
            ("tenant", Text),
            ("id", Text),
            ("made", Integer),
            ("used", Integer),
            ("bytes", Integer),
            ("instance", Text),
            ("changes", Integer),
        ],
    ),
    numbered(
        "message",
        &[
            ("id", Integer),
            ("tenant", Text),
            ("session", Text),
            ("role", Text),
            ("content", Text),
            ("whole", Text),
        ],
    ),
    table("state", 3, &[("tenant", Text), ("session", Text), ("key", Text), ("value", Bytes)]),
    table(
        "state_change",
        3,
        &[
            ("tenant", Text),
            ("session", Text),
            ("number", Integer),
            ("origin", Text),
            ("key", Text),
            ("old", Bytes),
            ("total", Integer),
        ],
    ),
    table(
        "tenant",
        1,
        &[
            ("name", Text),
            ("made", Integer),
            ("used", Integer),
            ("bytes", Integer),
            ("memories", Integer),
        ],
    ),
    table("variable", 2, &[("tenant", Text), ("key", Text), ("value", Bytes)]),
    table(
        "run",
        2,
        &[
            ("tenant", Text),
            ("id", Text),
            ("session", Text),
            ("status", Text),
            ("made", Integer),
            ("used", Integer),
            ("attempts", Integer),
            ("suspected", Integer),
            ("reason", Text),
            ("sealed", Text),
            ("summary", Text),
            ("parent", Text),
            ("root", Text),
            ("places", Integer),
            ("needs", Text),
            ("instance", Text),
            ("client", Text),
            ("rewind", Integer),
        ],
    ),
    table("opening", 2, &[("tenant", Text), ("run", Text), ("body", Text)]),
    table(
        "turn",
        3,
        &[
            ("tenant", Text),
            ("run", Text),
            ("number", Integer),
            ("place", Integer),
            ("body", Text),
            ("object", Text),
            ("changes", Integer),
        ],
    ),
    table(
        "call",
        6,
        &[
            ("tenant", Text),
            ("run", Text),
            ("turn", Integer),
            ("program", Integer),
            ("path", Text),
            ("number", Integer),
            ("times", Integer),
            ("function", Text),
            ("effect", Text),
            ("digest", Bytes),
            ("args", Text),
            ("came", Bytes),
            ("began", Integer),
            ("took", Integer),
            ("shared", Bytes),
        ],
    ),
    table("call_value", 3, &[("tenant", Text), ("run", Text), ("digest", Bytes), ("body", Bytes)]),
    table(
        "event",
        3,
        &[
            ("tenant", Text),
            ("run", Text),
            ("seq", Integer),
            ("root", Text),
            ("place", Integer),
            ("body", Text),
        ],
    ),
    table(
        "queue",
        2,
        &[
            ("tenant", Text),
            ("id", Text),
            ("session", Text),
            ("made", Integer),
            ("message", Text),
            ("origin", Text),
            ("priority", Integer),
            ("position", Integer),
            ("needs", Text),
            ("client", Text),
        ],
    ),
    table("changed", 2, &[("tenant", Text), ("call", Text), ("met", Bytes)]),
    table(
        "secret",
        2,
        &[("tenant", Text), ("name", Text), ("hosts", Text), ("nonce", Bytes), ("sealed", Bytes)],
    ),
    table(
        "blob",
        1,
        &[
            ("object", Text),
            ("tenant", Text),
            ("digest", Text),
            ("bytes", Integer),
            ("used", Integer),
            ("status", Text),
        ],
    ),
    numbered(
        "session_file",
        &[
            ("number", Integer),
            ("tenant", Text),
            ("session", Text),
            ("delta", Text),
            ("object", Text),
        ],
    ),
    table(
        "token",
        1,
        &[
            ("hash", Bytes),
            ("tenant", Text),
            ("name", Text),
            ("scopes", Text),
            ("made", Integer),
            ("used", Integer),
        ],
    ),
    table(
        "conversation",
        2,
        &[
            ("tenant", Text),
            ("digest", Bytes),
            ("session", Text),
            ("taken", Integer),
            ("used", Integer),
        ],
    ),
    table("integration", 2, &[("tenant", Text), ("name", Text), ("made", Integer), ("body", Text)]),
    numbered(
        "memory",
        &[
            ("number", Integer),
            ("tenant", Text),
            ("id", Integer),
            ("session", Text),
            ("made", Integer),
            ("text", Text),
        ],
    ),
    table("memory_vector", 2, &[("memory", Integer), ("model", Text), ("coordinates", Bytes)]),
];

impl Table {
    /// Returns the names of the key's columns.
    pub(super) fn key(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().take(self.keys).map(|(name, _)| *name)
    }

    /// Returns the names of all columns, separated by commas.
    pub(super) fn names(&self) -> String {
        list(self.columns.iter().map(|(name, _)| *name))
    }

    /// Returns the names of the key's columns, separated by commas.
    pub(super) fn key_names(&self) -> String {
        list(self.key())
    }

    /// Returns the index of a column, or `None` if the table has no such column.
    pub(super) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|(name, _)| *name == column)
    }
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

impl Kind {
    /// Returns a value in the form that both engines accept for a column of this kind.
    pub(super) fn canonical(self, value: Value) -> Value {
        match (self, value) {
            (Text, Value::Bytes(bytes)) => String::from_utf8(bytes)
                .map_or_else(|error| Value::Bytes(error.into_bytes()), Value::Text),
            (_, value) => value,
        }
    }
}
