-- A tenant in every key. What was there belongs to the tenant that is recorded with it: a run to the one that its settings named, a
-- session to that of its runs. What has none, or several, belongs to `default`.
CREATE TEMP TABLE run_owner AS
    SELECT id, session, CASE WHEN json_valid(opening)
        THEN CASE WHEN json_type(opening, '$.origin.granted.tenant') = 'text'
            THEN COALESCE(NULLIF(json_extract(opening, '$.origin.granted.tenant'), ''), 'default')
            ELSE 'default' END
        ELSE 'default' END AS tenant
    FROM main.run;
CREATE INDEX temp.run_owner_id ON run_owner (id);
CREATE INDEX temp.run_owner_session ON run_owner (session, tenant);
CREATE TEMP TABLE session_owner AS
    SELECT id, COALESCE(
        CASE WHEN substr(id, 1, 4) = 'run/'
        THEN (SELECT tenant FROM run_owner WHERE run_owner.id = substr(s.id, 5))
        ELSE (SELECT MIN(tenant) FROM run_owner WHERE run_owner.session = s.id
            HAVING COUNT(DISTINCT tenant) = 1)
        END, 'default') AS tenant
    FROM main.session AS s;
CREATE INDEX temp.session_owner_id ON session_owner (id);

CREATE TABLE new_session (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    made INTEGER NOT NULL,
    used INTEGER NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id)
) STRICT;
INSERT INTO new_session (tenant, id, made, used, bytes)
    SELECT o.tenant, s.id, s.made, s.used, s.bytes
    FROM main.session AS s JOIN session_owner AS o ON o.id = s.id;
CREATE TABLE new_message (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    content TEXT NOT NULL,
    whole TEXT,
    FOREIGN KEY (tenant, session) REFERENCES new_session (tenant, id) ON DELETE CASCADE
) STRICT;
INSERT INTO new_message (id, tenant, session, role, content, whole)
    SELECT m.id, o.tenant, m.session, m.role, m.content, m.whole
    FROM main.message AS m JOIN session_owner AS o ON o.id = m.session;
CREATE TABLE new_state (
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (tenant, session, key),
    FOREIGN KEY (tenant, session) REFERENCES new_session (tenant, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO new_state (tenant, session, key, value)
    SELECT o.tenant, s.session, s.key, s.value
    FROM main.state AS s JOIN session_owner AS o ON o.id = s.session;
DROP TABLE main.message;
DROP TABLE main.state;
DROP TABLE main.session;
ALTER TABLE new_session RENAME TO session;
ALTER TABLE new_message RENAME TO message;
ALTER TABLE new_state RENAME TO state;
CREATE INDEX message_of_session ON message (tenant, session, id);

CREATE TABLE new_run (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT,
    status TEXT NOT NULL CHECK (status IN ('open', 'parked', 'ended')),
    made INTEGER NOT NULL,
    used INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    sealed TEXT,
    opening TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
INSERT INTO new_run (tenant, id, session, status, made, used, opening)
    SELECT o.tenant, r.id, r.session, r.status, r.made, r.used, r.opening
    FROM main.run AS r JOIN run_owner AS o ON o.id = r.id;
CREATE TABLE new_turn (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (tenant, run, number),
    FOREIGN KEY (tenant, run) REFERENCES new_run (tenant, id) ON DELETE CASCADE
) STRICT;
INSERT INTO new_turn (tenant, run, number, body)
    SELECT o.tenant, t.run, t.number, t.body FROM main.turn AS t JOIN run_owner AS o ON o.id = t.run;
CREATE TABLE new_call (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
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
    UNIQUE (tenant, run, turn, program, path, number),
    FOREIGN KEY (tenant, run) REFERENCES new_run (tenant, id) ON DELETE CASCADE
) STRICT;
INSERT INTO new_call
    SELECT o.tenant, c.run, c.turn, c.program, c.path, c.number, c.times, c.function, c.effect, c.digest, c.args,
        c.came
    FROM main.call AS c JOIN run_owner AS o ON o.id = c.run;
CREATE TABLE new_changed (
    tenant TEXT NOT NULL,
    call TEXT NOT NULL,
    met BLOB,
    PRIMARY KEY (tenant, call)
) STRICT, WITHOUT ROWID;
INSERT INTO new_changed (tenant, call, met)
    SELECT COALESCE((SELECT tenant FROM run_owner WHERE id = substr(c.call, 1, instr(c.call, '/') - 1)), 'default'),
        c.call, c.met
    FROM main.changed AS c;
DROP TABLE main.call;
DROP TABLE main.turn;
DROP TABLE main.run;
DROP TABLE main.changed;
DROP TABLE main.hold;
ALTER TABLE new_run RENAME TO run;
ALTER TABLE new_turn RENAME TO turn;
ALTER TABLE new_call RENAME TO call;
ALTER TABLE new_changed RENAME TO changed;
CREATE INDEX run_of_status ON run (tenant, status, used);
CREATE TABLE hold (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    beat INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;
DROP TABLE temp.run_owner;
DROP TABLE temp.session_owner;
