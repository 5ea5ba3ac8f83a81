//! The tables that contain the content of a store, and their columns. The statements that create
//! them in either engine follow from this list, and so do the counts of bytes, copies and checks.
//!
//! Locks, the processes that hold them, and requests to these processes are not content.

use crate::db::Value;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A 64-bit integer.
    Integer,
    /// A name, an id or JSON: a string without zero bytes, which sorts by its bytes.
    Name,
    /// A UTF-8 string. PostgreSQL stores it as bytes, because it may contain a zero byte.
    Text,
    /// Any bytes.
    Bytes,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    is_optional: bool,
    default: Option<&'static str>,
    /// If true, the size of the value counts as kept bytes.
    is_counted: bool,
}

impl Column {
    const fn new(name: &'static str, kind: Kind) -> Column {
        Column { name, kind, is_optional: false, default: None, is_counted: false }
    }

    /// Allows the column to be empty.
    const fn optional(self) -> Column {
        Column { is_optional: true, ..self }
    }

    /// Sets the value, in SQL, of a row that names none.
    const fn or(self, default: &'static str) -> Column {
        Column { default: Some(default), ..self }
    }

    /// Counts the size of the value as kept bytes.
    const fn counted(self) -> Column {
        Column { is_counted: true, ..self }
    }
}

const fn int(name: &'static str) -> Column {
    Column::new(name, Kind::Integer)
}

const fn name(name: &'static str) -> Column {
    Column::new(name, Kind::Name)
}

const fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}

const fn bytes(name: &'static str) -> Column {
    Column::new(name, Kind::Bytes)
}

/// The words of an engine in the statement that creates a table.
pub(super) struct TableWords {
    /// The name of a column's type.
    pub(super) kind: fn(Kind) -> &'static str,
    /// The type of a key that the database assigns.
    pub(super) numbered: &'static str,
    /// The options of each table.
    pub(super) options: &'static str,
    /// The options of a table whose rows are in the index of their keys.
    pub(super) clustered: &'static str,
}

/// A table with its columns.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The columns. The key's columns come first, in key order.
    pub(super) columns: &'static [Column],
    /// Number of columns in the key. Both engines sort rows by their keys in the same order.
    pub(super) keys: usize,
    /// If true, the key is a number that the database assigns.
    pub(super) is_numbered: bool,
    /// If true, SQLite keeps the rows in the index of their keys. This suits small rows.
    is_clustered: bool,
    /// The table to whose row a row belongs, with the columns that name that row. A row is removed
    /// with the row to which it belongs.
    owner: Option<(&'static str, &'static str)>,
    /// Further constraints, in SQL.
    constraints: &'static [&'static str],
    /// The indexes, each with its name, its columns and its condition, which may be empty.
    indexes: &'static [(&'static str, &'static str, &'static str)],
    /// The bytes that a row keeps besides its counted values, in SQL. `{row}` is the row.
    base: &'static str,
    /// The columns whose changes change the count of kept bytes.
    changing: &'static [&'static str],
}

impl Table {
    const fn new(name: &'static str, keys: usize, columns: &'static [Column]) -> Table {
        Table {
            name,
            columns,
            keys,
            is_numbered: false,
            is_clustered: false,
            owner: None,
            constraints: &[],
            indexes: &[],
            base: "100",
            changing: &[],
        }
    }

    const fn numbered(name: &'static str, columns: &'static [Column]) -> Table {
        Table { is_numbered: true, ..Table::new(name, 1, columns) }
    }

    const fn clustered(self) -> Table {
        Table { is_clustered: true, ..self }
    }

    const fn of_session(self) -> Table {
        Table { owner: Some(("session", "tenant, session")), ..self }
    }

    const fn of_run(self) -> Table {
        Table { owner: Some(("run", "tenant, run")), ..self }
    }
}

/// The tables, each listed after the tables that its rows refer to.
pub(super) const TABLES: &[Table] = &[
    // `instance` is an id that no later session with the same id has. `changes` is the number of
    // changes to the state so far.
    Table {
        indexes: &[("session_of_use", "tenant, used", "")],
        ..Table::new(
            "session",
            2,
            &[
                name("tenant"),
                name("id"),
                int("created"),
                int("used"),
                int("bytes").or("0"),
                name("instance").or("''"),
                int("changes").or("0"),
            ],
        )
    },
    // `whole` is the JSON form of a message that consists of more than a role and a text.
    Table {
        constraints: &["CHECK (role IN ('user', 'assistant'))"],
        indexes: &[("message_of_session", "tenant, session, id", "")],
        ..Table::numbered(
            "message",
            &[
                int("id"),
                name("tenant"),
                name("session"),
                name("role"),
                text("content").counted(),
                text("whole").optional().counted(),
            ],
        )
        .of_session()
    },
    Table {
        changing: &["value"],
        ..Table::new(
            "state",
            3,
            &[name("tenant"), name("session"), text("key").counted(), bytes("value").counted()],
        )
        .clustered()
        .of_session()
    },
    // The earlier values of changed keys in the states of sessions.
    Table {
        indexes: &[("state_change_of_key", "tenant, session, key, number", "")],
        ..Table::new(
            "state_change",
            3,
            &[
                name("tenant"),
                name("session"),
                int("number"),
                name("origin").optional(),
                text("key").counted(),
                bytes("old").optional().counted(),
                int("total"),
            ],
        )
        .of_session()
    },
    // `memories` counts all items of memory that the tenant has ever added.
    Table {
        base: "0",
        ..Table::new(
            "tenant",
            1,
            &[
                name("name"),
                int("created"),
                int("used"),
                int("bytes").or("0"),
                int("memories").or("0"),
            ],
        )
    },
    Table {
        owner: Some(("tenant", "tenant")),
        changing: &["value"],
        ..Table::new(
            "variable",
            2,
            &[name("tenant"), text("key").counted(), bytes("value").counted()],
        )
        .clustered()
    },
    // `suspected` is the number of ends of processes for which a run is suspected since its last
    // turn, negative while the run is isolated. `parent` and `root` are those of a child run, and
    // `places` is the number of positions in the order of a root run's tree. `instance` is that of
    // the session in which the run began. `client` is the process whose client waits for a run that
    // must end without its client. `rewind` is the number of changes to which the session returns
    // when a fork is first driven.
    Table {
        constraints: &["CHECK (status IN ('open', 'parked', 'ended'))"],
        indexes: &[
            ("run_of_status", "tenant, status, used", ""),
            ("run_of_session", "tenant, session, id", ""),
            ("run_of_time", "tenant, created, id", ""),
            ("run_of_root", "tenant, root, id", "root IS NOT NULL"),
            ("run_of_use", "tenant, used", ""),
            ("run_of_client", "client", "client IS NOT NULL AND status <> 'ended'"),
        ],
        base: "200",
        changing: &["reason", "sealed", "summary"],
        ..Table::new(
            "run",
            2,
            &[
                name("tenant"),
                name("id"),
                name("session").optional(),
                name("status"),
                int("created"),
                int("used"),
                int("attempts").or("0"),
                int("suspected").or("0"),
                text("reason").optional().counted(),
                name("sealed").optional().counted(),
                name("summary").optional().counted(),
                name("parent").optional(),
                name("root").optional(),
                int("places").or("0"),
                name("needs").or("''"),
                name("instance").or("''"),
                name("client").optional(),
                int("rewind").optional(),
            ],
        )
    },
    // The start of a run, which can be large. It is not in the run's row, because each turn updates
    // that row, and SQLite then writes the whole row.
    Table::new("opening", 2, &[name("tenant"), name("run"), name("body").counted()]).of_run(),
    Table {
        indexes: &[("turn_of_object", "object", "object IS NOT NULL")],
        ..Table::new(
            "turn",
            3,
            &[
                name("tenant"),
                name("run"),
                int("number"),
                int("place"),
                name("body").counted(),
                name("object").optional(),
                int("changes").optional(),
            ],
        )
        .of_run()
    },
    Table {
        changing: &["outcome"],
        ..Table::new(
            "call",
            6,
            &[
                name("tenant"),
                name("run"),
                int("turn"),
                int("program"),
                name("path"),
                int("number"),
                int("times"),
                name("function"),
                name("effect"),
                bytes("digest"),
                text("args").counted(),
                bytes("outcome").optional().counted(),
                int("began").optional(),
                int("took").optional(),
                bytes("shared").optional(),
            ],
        )
        .of_run()
    },
    // Large results of calls, which equal results of a run share.
    Table::new(
        "call_value",
        3,
        &[name("tenant"), name("run"), bytes("digest"), bytes("body").counted()],
    )
    .of_run(),
    Table {
        indexes: &[("event_of_tree", "tenant, root, place", "")],
        ..Table::new(
            "event",
            3,
            &[
                name("tenant"),
                name("run"),
                int("seq"),
                name("root"),
                int("place"),
                name("body").counted(),
            ],
        )
        .of_run()
    },
    Table {
        indexes: &[("queue_of_client", "client", "client IS NOT NULL")],
        base: "200",
        ..Table::new(
            "queue",
            2,
            &[
                name("tenant"),
                name("id"),
                name("session").optional(),
                int("created"),
                text("message").counted(),
                name("origin").counted(),
                int("priority").or("0"),
                int("position").or("0"),
                name("needs").or("''"),
                name("client").optional(),
            ],
        )
    },
    Table::new(
        "changed",
        2,
        &[name("tenant"), text("call").counted(), bytes("seen").optional().counted()],
    )
    .clustered(),
    Table {
        changing: &["hosts", "sealed"],
        ..Table::new(
            "secret",
            2,
            &[
                name("tenant"),
                name("name"),
                name("hosts").counted(),
                bytes("nonce"),
                bytes("sealed").counted(),
            ],
        )
        .clustered()
    },
    // The fingerprints of the tenants' keys, which are outside of the store.
    Table {
        base: "0",
        ..Table::new("tenant_key", 2, &[name("tenant"), name("kind"), name("fingerprint")])
            .clustered()
    },
    // Objects outside the database.
    Table {
        indexes: &[("blob_of_content", "tenant, digest", "")],
        base: "100 + {row}.bytes",
        ..Table::new(
            "blob",
            1,
            &[
                name("object"),
                name("tenant"),
                name("digest"),
                int("bytes"),
                int("used"),
                name("status"),
            ],
        )
        .clustered()
    },
    Table {
        indexes: &[
            ("file_of_session", "tenant, session, number", ""),
            ("file_of_object", "object", "object IS NOT NULL"),
        ],
        ..Table::numbered(
            "session_file",
            &[
                int("number"),
                name("tenant"),
                name("session"),
                text("delta").counted(),
                name("object").optional(),
            ],
        )
        .of_session()
    },
    // The HTTP server's tokens. A token is identified by the hash of its secret.
    Table {
        constraints: &["UNIQUE (tenant, name)"],
        ..Table::new(
            "token",
            1,
            &[
                bytes("hash"),
                name("tenant"),
                name("name"),
                name("scopes"),
                int("created"),
                int("used").optional(),
            ],
        )
        .clustered()
    },
    // The conversations of the HTTP server's clients. They outlive their sessions.
    Table {
        indexes: &[("conversation_of_use", "used", "")],
        ..Table::new(
            "conversation",
            2,
            &[
                name("tenant"),
                bytes("digest"),
                name("session").optional(),
                int("taken"),
                int("used"),
            ],
        )
        .clustered()
    },
    Table {
        constraints: &["UNIQUE (name)"],
        ..Table::new(
            "integration",
            2,
            &[name("tenant"), name("name"), int("created"), name("body").counted()],
        )
    },
    Table {
        constraints: &["UNIQUE (tenant, id)"],
        indexes: &[("memory_of_session", "tenant, session", "")],
        base: "200",
        ..Table::numbered(
            "memory",
            &[
                int("number"),
                name("tenant"),
                int("id"),
                name("session").optional(),
                int("created"),
                text("text").counted(),
            ],
        )
        .of_session()
    },
    // The embedding of an item. The bytes of its coordinates count for the tenant of the item.
    Table {
        owner: Some(("memory", "memory")),
        base: "0",
        ..Table::new("memory_vector", 2, &[int("memory"), name("model"), bytes("coordinates")])
            .clustered()
    },
];

impl Table {
    /// Returns the key's columns.
    pub(super) fn key(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().take(self.keys)
    }

    /// Returns the names of all columns, separated by commas.
    pub(super) fn names(&self) -> String {
        list(self.columns.iter())
    }

    /// Returns the names of the key's columns, separated by commas.
    pub(super) fn key_names(&self) -> String {
        list(self.key())
    }

    /// Returns the statements that create the table and its indexes.
    pub(super) fn creation(&self, words: &TableWords) -> String {
        let table = self.name;
        let mut parts = Vec::new();
        for (at, Column { name, kind, is_optional, default, .. }) in self.columns.iter().enumerate()
        {
            if at == 0 && self.is_numbered {
                parts.push(format!("{name} {} PRIMARY KEY", words.numbered));
                continue;
            }
            let required = if *is_optional { "" } else { " NOT NULL" };
            let default = default.map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
            parts.push(format!("{name} {}{required}{default}", (words.kind)(*kind)));
        }
        if !self.is_numbered {
            parts.push(format!("PRIMARY KEY ({})", self.key_names()));
        }
        if let Some((owner, columns)) = self.owner {
            parts.push(format!("FOREIGN KEY ({columns}) REFERENCES {owner} ON DELETE CASCADE"));
        }
        parts.extend(self.constraints.iter().map(|&constraint| constraint.to_owned()));
        let clustered = if self.is_clustered { words.clustered } else { "" };
        let parts = parts.join(",\n    ");
        let mut all =
            format!("CREATE TABLE {table} (\n    {parts}\n){}{clustered};\n", words.options);
        for (index, columns, condition) in self.indexes {
            let condition = match *condition {
                "" => String::new(),
                condition => format!(" WHERE {condition}"),
            };
            all += &format!("CREATE INDEX {index} ON {table} ({columns}){condition};\n");
        }
        all
    }

    /// Returns the number of bytes that a row keeps, in SQL. Returns `None` if a row of the table
    /// does not count by itself.
    pub(super) fn kept_bytes(&self, row: &str) -> Option<String> {
        if self.base == "0" {
            return None;
        }
        let counted = self.columns.iter().filter(|column| column.is_counted);
        let sizes = counted.map(|Column { name, is_optional, .. }| {
            if *is_optional {
                format!(" + COALESCE(OCTET_LENGTH({row}.{name}), 0)")
            } else {
                format!(" + OCTET_LENGTH({row}.{name})")
            }
        });
        Some(self.base.replace("{row}", row) + &sizes.collect::<String>())
    }

    /// Returns the columns whose changes change the count of kept bytes, separated by commas, or
    /// `None` if there are none.
    pub(super) fn changing(&self) -> Option<String> {
        (!self.changing.is_empty()).then(|| self.changing.join(", "))
    }
}

fn list<'a>(columns: impl Iterator<Item = &'a Column>) -> String {
    columns.map(|column| column.name).collect::<Vec<_>>().join(", ")
}

impl Kind {
    /// Returns a value in the form that both engines accept for a column of this kind.
    pub(super) fn canonical(self, value: Value) -> Value {
        match (self, value) {
            (Kind::Name | Kind::Text, Value::Bytes(bytes)) => String::from_utf8(bytes)
                .map_or_else(|error| Value::Bytes(error.into_bytes()), Value::Text),
            (_, value) => value,
        }
    }
}
