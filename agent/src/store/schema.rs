//! The tables in SQLite, and the migrations of older files.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::copy::{MARK, unfinished};
use super::db::Opening;
use crate::error::Cause;

/// The migrations. The entry at index n migrates version n to version n + 1. Entries are never
/// changed, only added.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        made INTEGER NOT NULL,
        used INTEGER NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE message (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
        content TEXT NOT NULL
    ) STRICT;
    CREATE INDEX message_of_session ON message (session, id);
    CREATE TABLE state (
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (session, key)
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE tenant (
        name TEXT PRIMARY KEY,
        made INTEGER NOT NULL,
        used INTEGER NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE variable (
        tenant TEXT NOT NULL REFERENCES tenant (name) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (tenant, key)
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE run (
        id TEXT PRIMARY KEY,
        session TEXT,
        status TEXT NOT NULL CHECK (status IN ('open', 'parked', 'ended')),
        made INTEGER NOT NULL,
        used INTEGER NOT NULL,
        opening TEXT NOT NULL
    ) STRICT;
    CREATE INDEX run_of_status ON run (status, used);
    CREATE TABLE turn (
        run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (run, number)
    ) STRICT;
    CREATE TABLE call (
        run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        turn INTEGER NOT NULL,
        program INTEGER NOT NULL,
        path TEXT NOT NULL,
        number INTEGER NOT NULL,
        times INTEGER NOT NULL,
        function TEXT NOT NULL,
        effect TEXT NOT NULL,
        digest BLOB NOT NULL,
        args TEXT NOT NULL,
        came BLOB,
        UNIQUE (run, turn, program, path, number)
    ) STRICT;
    CREATE TABLE changed (
        call TEXT PRIMARY KEY,
        met BLOB
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE hold (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        beat INTEGER NOT NULL
    ) STRICT;
",
    // The JSON form of a message that consists of more than a role and a text.
    "
    ALTER TABLE message ADD COLUMN whole TEXT;
",
    "
    CREATE TABLE secret (
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        hosts TEXT NOT NULL,
        nonce BLOB NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY (tenant, name)
    ) STRICT, WITHOUT ROWID;
",
    include_str!("tenants.sql"),
    // Events of runs, the queue of runs, and the files of sessions.
    "
    CREATE TABLE event (
        tenant TEXT NOT NULL,
        run TEXT NOT NULL,
        seq INTEGER NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (tenant, run, seq),
        FOREIGN KEY (tenant, run) REFERENCES run (tenant, id) ON DELETE CASCADE
    ) STRICT;
    CREATE TABLE queue (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        session TEXT,
        made INTEGER NOT NULL,
        message TEXT NOT NULL,
        origin TEXT NOT NULL,
        PRIMARY KEY (tenant, id)
    ) STRICT;
    ALTER TABLE run ADD COLUMN summary TEXT;
    CREATE INDEX run_of_session ON run (tenant, session, id);
    CREATE INDEX run_of_time ON run (tenant, made, id);
    CREATE TABLE session_file (
        number INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        delta TEXT NOT NULL,
        FOREIGN KEY (tenant, session) REFERENCES session (tenant, id) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX file_of_session ON session_file (tenant, session, number);
",
    // The HTTP server's tokens, its clients' conversations, and integrations. A token is identified
    // by the hash of its secret.
    "
    CREATE TABLE token (
        hash BLOB PRIMARY KEY,
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        scopes TEXT NOT NULL,
        made INTEGER NOT NULL,
        used INTEGER,
        UNIQUE (tenant, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE conversation (
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (tenant, session),
        FOREIGN KEY (tenant, session) REFERENCES session (tenant, id) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX conversation_of_digest ON conversation (tenant, digest);
    CREATE TABLE integration (
        tenant TEXT NOT NULL,
        name TEXT NOT NULL UNIQUE,
        made INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (tenant, name)
    ) STRICT;
",
    // The parent of a child run, and the root run of its tree.
    "
    ALTER TABLE run ADD COLUMN parent TEXT;
    ALTER TABLE run ADD COLUMN root TEXT;
    CREATE INDEX run_of_root ON run (tenant, root, id) WHERE root IS NOT NULL;
",
    // Memory. The words of encrypted items are not indexed. `memories` counts all items that a
    // tenant has ever added.
    "
    CREATE TABLE memory (
        number INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        id INTEGER NOT NULL,
        session TEXT,
        made INTEGER NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (tenant, id),
        FOREIGN KEY (tenant, session) REFERENCES session (tenant, id) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX memory_of_session ON memory (tenant, session);
    CREATE TABLE memory_vector (
        memory INTEGER NOT NULL REFERENCES memory (number) ON DELETE CASCADE,
        model TEXT NOT NULL,
        coordinates BLOB NOT NULL,
        PRIMARY KEY (memory, model)
    ) STRICT, WITHOUT ROWID;
    CREATE VIRTUAL TABLE memory_words USING fts5 (
        tenant, text, parts,
        content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
    );
    CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
        DELETE FROM memory_words WHERE rowid = old.number;
    END;
    ALTER TABLE tenant ADD COLUMN memories INTEGER NOT NULL DEFAULT 0;
",
    // The root run of the tree that an event's run belongs to. The index also contains the order in
    // which the events of a tree were recorded.
    "
    ALTER TABLE event ADD COLUMN root TEXT;
    UPDATE event SET root = (
        SELECT COALESCE(run.root, run.id) FROM run
        WHERE run.tenant = event.tenant AND run.id = event.run);
    CREATE INDEX event_of_tree ON event (tenant, root);
",
    // The times of calls, in milliseconds, and an index of runs by their last change.
    "
    ALTER TABLE call ADD COLUMN began INTEGER;
    ALTER TABLE call ADD COLUMN took INTEGER;
    CREATE INDEX run_of_use ON run (tenant, used);
",
    // The position of each turn and event in the order of its tree, which replaces the rowid.
    // `places` is the number of positions in a root run's tree. Also adds locks with fencing
    // numbers, requests to cancel runs of other processes, and for each run its requirements and
    // its priority in the queue.
    "
    ALTER TABLE run ADD COLUMN places INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE turn ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE event ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
    UPDATE turn SET place = rowid;
    UPDATE event SET place = rowid;
    UPDATE run SET places = COALESCE((SELECT MAX(rowid) FROM turn), 0)
        + COALESCE((SELECT MAX(rowid) FROM event), 0);
    DROP INDEX event_of_tree;
    CREATE INDEX event_of_tree ON event (tenant, root, place);
    DROP TABLE hold;
    CREATE TABLE replica (
        id TEXT PRIMARY KEY,
        expires INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE hold (
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        holder TEXT NOT NULL,
        fence INTEGER NOT NULL,
        PRIMARY KEY (tenant, name)
    ) STRICT;
    CREATE INDEX hold_of_holder ON hold (holder);
    CREATE TABLE cancellation (
        tenant TEXT NOT NULL,
        run TEXT NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (tenant, run)
    ) STRICT;
    ALTER TABLE queue ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE queue ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE queue ADD COLUMN needs TEXT NOT NULL DEFAULT '';
    ALTER TABLE run ADD COLUMN needs TEXT NOT NULL DEFAULT '';
",
    // The marker of a store that is the target of an unfinished copy.
    "
    CREATE TABLE copying (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        source TEXT NOT NULL,
        copied INTEGER NOT NULL
    ) STRICT;
",
    // Objects outside the database, and the rows that refer to them.
    "
    CREATE TABLE blob (
        object TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        digest TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        used INTEGER NOT NULL,
        status TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blob_of_content ON blob (tenant, digest);
    ALTER TABLE turn ADD COLUMN object TEXT;
    ALTER TABLE session_file ADD COLUMN object TEXT;
    CREATE INDEX turn_of_object ON turn (object) WHERE object IS NOT NULL;
    CREATE INDEX file_of_object ON session_file (object) WHERE object IS NOT NULL;
",
    // An index with the short columns of the queue. In a row, most of these columns come after the
    // message, so a query without this index would read every message.
    "
    CREATE INDEX queue_of_place ON queue (tenant, position, id, session, made, priority, needs);
",
    // The start of each run, which can be large. It is not in the run's row, because each turn
    // updates that row, and SQLite then writes the whole row. Also adds an index of sessions by
    // their last use.
    "
    CREATE TABLE opening (
        tenant TEXT NOT NULL,
        run TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (tenant, run),
        FOREIGN KEY (tenant, run) REFERENCES run (tenant, id) ON DELETE CASCADE
    ) STRICT;
    INSERT INTO opening (tenant, run, body) SELECT tenant, id, opening FROM run;
    ALTER TABLE run DROP COLUMN opening;
    CREATE INDEX session_of_use ON session (tenant, used);
",
    // Number of ends of processes for which a run is suspected since its last turn. Negative while
    // the run is isolated.
    "
    ALTER TABLE run ADD COLUMN suspected INTEGER NOT NULL DEFAULT 0;
    ",
    // The id of the store, which a file beside it repeats; the number of checks that the store can
    // be written; and the moments by which its clock is judged.
    "
    CREATE TABLE IF NOT EXISTS store (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        id TEXT NOT NULL,
        checks INTEGER NOT NULL DEFAULT 0,
        seen_time INTEGER,
        seen_boot TEXT NOT NULL DEFAULT '',
        seen_uptime INTEGER NOT NULL DEFAULT 0,
        ahead_time INTEGER,
        ahead_boot TEXT NOT NULL DEFAULT '',
        ahead_uptime INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT OR IGNORE INTO store (one, id) VALUES (1, lower(hex(randomblob(16))));
    ",
    // Conversations by their digests, which outlive their sessions. The digests of older versions
    // had another content.
    "
    DROP TABLE conversation;
    CREATE TABLE conversation (
        tenant TEXT NOT NULL,
        digest BLOB NOT NULL,
        session TEXT,
        taken INTEGER NOT NULL,
        used INTEGER NOT NULL,
        PRIMARY KEY (tenant, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX conversation_of_use ON conversation (used);
",
    // The identity of each session, which no later session with the same id has, and of the session
    // in which each run began.
    "
    ALTER TABLE session ADD COLUMN instance TEXT NOT NULL DEFAULT '';
    UPDATE session SET instance = lower(hex(randomblob(16)));
    CREATE TRIGGER session_created AFTER INSERT ON session WHEN new.instance = '' BEGIN
        UPDATE session SET instance = lower(hex(randomblob(16)))
        WHERE tenant = new.tenant AND id = new.id;
    END;
    ALTER TABLE run ADD COLUMN instance TEXT NOT NULL DEFAULT '';
",
    // The process whose client waits for the run, if the run must end without its client.
    "
    ALTER TABLE queue ADD COLUMN client TEXT;
    ALTER TABLE run ADD COLUMN client TEXT;
    CREATE INDEX queue_of_client ON queue (client) WHERE client IS NOT NULL;
    CREATE INDEX run_of_client ON run (client) WHERE client IS NOT NULL AND status <> 'ended';
",
    // The earlier values of changed keys in the states of sessions. `session.changes` is the number
    // of changes so far, and `turn.changes` is that number when the turn was recorded. `rewind` is
    // the number to which the session returns when a fork is first driven.
    "
    CREATE TABLE state_change (
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        number INTEGER NOT NULL,
        origin TEXT,
        key TEXT NOT NULL,
        old BLOB,
        total INTEGER NOT NULL,
        PRIMARY KEY (tenant, session, number),
        FOREIGN KEY (tenant, session) REFERENCES session (tenant, id) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX state_change_of_key ON state_change (tenant, session, key, number);
    ALTER TABLE session ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE turn ADD COLUMN changes INTEGER;
    ALTER TABLE run ADD COLUMN rewind INTEGER;
",
    // Large results of calls, which equal results of a run share, and the number of bytes that each
    // tenant keeps.
    include_str!("usage.sql"),
];

/// Checks the file's version and migrates the file to the latest version. The source of a copy, and
/// a target that has tables, must already have the latest version.
pub(super) fn prepare(connection: &mut Connection, opening: Opening) -> Result<(), Cause> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: usize =
        transaction.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize;
    opening.check_version(version, MIGRATIONS.len())?;
    let missing = MIGRATIONS.get(version..).ok_or_else(|| {
        let message = format!(
            "the file has version {version}, but this program supports versions up to {}; use a \
             newer program",
            MIGRATIONS.len()
        );
        rusqlite::Error::InvalidParameterName(message)
    })?;
    for step in missing {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(
        None,
        "user_version",
        u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX),
    )?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
    if let Some((source, copied)) = transaction.query_row(MARK, [], read).optional()?
        && opening != Opening::Target
    {
        return Err(unfinished(&source, copied).into());
    }
    Ok(transaction.commit()?)
}
