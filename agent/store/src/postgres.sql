-- The tables of PostgreSQL that are not content.
--
-- A tenant has several numbers of kept bytes, whose sum counts, so that its transactions do not wait
-- for each other.
CREATE TABLE usage (
    tenant TEXT COLLATE "C" NOT NULL,
    shard BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (tenant, shard)
) WITH (fillfactor = 50);
CREATE FUNCTION add_usage(of TEXT, more BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF more <> 0 THEN
        INSERT INTO usage (tenant, shard, bytes) VALUES (of, pg_backend_pid() % 16, more)
        ON CONFLICT (tenant, shard) DO UPDATE SET bytes = usage.bytes + excluded.bytes;
    END IF;
END $$;
CREATE TABLE replica (
    id TEXT COLLATE "C" PRIMARY KEY,
    expires BIGINT NOT NULL
);
CREATE TABLE hold (
    tenant TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    fence BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE INDEX hold_of_holder ON hold (holder);
CREATE TABLE cancellation (
    tenant TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    reason BYTEA NOT NULL,
    PRIMARY KEY (tenant, run)
);
-- The marker of a store that is the target of an unfinished copy.
CREATE TABLE copying (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    source TEXT NOT NULL,
    copied BIGINT NOT NULL
);
-- The number of checks that the store can be written, and the moments by which its clock is judged.
CREATE TABLE store (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    checks BIGINT NOT NULL DEFAULT 0,
    seen_time BIGINT,
    seen_boot TEXT NOT NULL DEFAULT '',
    seen_uptime BIGINT NOT NULL DEFAULT 0,
    ahead_time BIGINT,
    ahead_boot TEXT NOT NULL DEFAULT '',
    ahead_uptime BIGINT NOT NULL DEFAULT 0
);
INSERT INTO store (one) VALUES (1);
