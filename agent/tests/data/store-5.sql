-- A store of version 5, in which only states of tenants and secrets have a tenant in their keys.
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
ALTER TABLE message ADD COLUMN whole TEXT;
CREATE TABLE secret (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    hosts TEXT NOT NULL,
    nonce BLOB NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

INSERT INTO session (id, made, used, bytes) VALUES
    ('of-alice', 1, 5, 2), ('of-bob', 1, 4, 0), ('of-both', 1, 3, 0), ('of-nobody', 1, 2, 0), ('run/b1', 1, 1, 4);
INSERT INTO message (session, role, content) VALUES ('of-alice', 'user', 'hello'), ('of-alice', 'assistant', 'hello, alice');
INSERT INTO state (session, key, value) VALUES ('of-alice', 'k', x'76'), ('run/b1', 'own', x'31');
INSERT INTO tenant (name, made, used, bytes) VALUES ('alice', 1, 1, 2);
INSERT INTO variable (tenant, key, value) VALUES ('alice', 'v', x'76');
INSERT INTO run (id, session, status, made, used, opening) VALUES ('a1', 'of-alice', 'ended', 1, 9000000000000000, '{"setup":{},"message":"hello","agent":"a","model":"m","temperature":0.0,"max_tokens":1,"granted":[],"capabilities":{},"origin":{"by":"run","granted":{"tenant":"alice"}}}');
INSERT INTO run (id, session, status, made, used, opening) VALUES ('a2', 'of-both', 'ended', 2, 9000000000000000, '{"setup":{},"message":"hello","agent":"a","model":"m","temperature":0.0,"max_tokens":1,"granted":[],"capabilities":{},"origin":{"by":"run","granted":{"tenant":"alice"}}}');
INSERT INTO run (id, session, status, made, used, opening) VALUES ('b1', NULL, 'open', 1, 9000000000000000, '{"setup":{},"message":"hello","agent":"a","model":"m","temperature":0.0,"max_tokens":1,"granted":[],"capabilities":{},"origin":{"by":"run","granted":{"tenant":"bob"}}}');
INSERT INTO run (id, session, status, made, used, opening) VALUES ('b2', 'of-both', 'ended', 2, 9000000000000000, '{"setup":{},"message":"hello","agent":"a","model":"m","temperature":0.0,"max_tokens":1,"granted":[],"capabilities":{},"origin":{"by":"run","granted":{"tenant":"bob"}}}');
INSERT INTO run (id, session, status, made, used, opening) VALUES ('d1', 'of-nobody', 'parked', 1, 9000000000000000, '{"setup":{},"message":"hello","agent":"a","model":"m","temperature":0.0,"max_tokens":1,"granted":[],"capabilities":{},"origin":{"by":"serve","exec":false}}');
INSERT INTO run SELECT 'b3', 'of-bob', 'ended', 0, used, opening FROM run WHERE id = 'b1';
INSERT INTO turn (run, number, body) VALUES
    ('b1', 0, '{"input":{"begin":{"message":"hello"}},"done":[],"seq":1,"elapsed_ms":0}');
INSERT INTO call (run, turn, program, path, number, times, function, effect, digest, args, came) VALUES
    ('b1', 0, 0, '', 1, 1, 'kv.set', 'changes', x'00000000000000000000000000000000', '"own"', NULL);
INSERT INTO changed (call, met) VALUES ('b1/0.0//1', NULL);
INSERT INTO hold (name, holder, beat) VALUES ('run:b1', 'another-boot 1 1 x', 0);
PRAGMA user_version = 5;
