-- The tables of SQLite that are not content.
CREATE TABLE usage (
    tenant TEXT NOT NULL,
    shard INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant, shard)
) STRICT, WITHOUT ROWID;
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
-- The marker of a store that is the target of an unfinished copy.
CREATE TABLE copying (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    source TEXT NOT NULL,
    copied INTEGER NOT NULL
) STRICT;
-- The id of the store, which a file beside it repeats; the number of checks that the store can be
-- written; and the moments by which its clock is judged.
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
