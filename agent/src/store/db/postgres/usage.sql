-- The number of bytes that each tenant keeps. Triggers count each row when it is added, changed or
-- removed, so the number cannot differ from the rows. A row counts with its texts and 100 bytes.
--
-- A tenant has several numbers, whose sum counts, so that its transactions do not wait for each other.
CREATE TABLE call_value (
    tenant TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (tenant, run, digest),
    FOREIGN KEY (tenant, run) REFERENCES run (tenant, id) ON DELETE CASCADE
);
ALTER TABLE call ADD COLUMN shared BYTEA;
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
CREATE FUNCTION session_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100);
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER session_usage AFTER INSERT OR DELETE ON session
    FOR EACH ROW EXECUTE PROCEDURE session_usage();
CREATE FUNCTION message_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.content) + COALESCE(OCTET_LENGTH(NEW.whole), 0));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.content) + COALESCE(OCTET_LENGTH(OLD.whole), 0)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER message_usage AFTER INSERT OR DELETE ON message
    FOR EACH ROW EXECUTE PROCEDURE message_usage();
CREATE FUNCTION state_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.key) + OCTET_LENGTH(NEW.value));
    END IF;
    IF TG_OP = 'UPDATE' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.key) + OCTET_LENGTH(NEW.value) - (100 + OCTET_LENGTH(OLD.key) + OCTET_LENGTH(OLD.value)));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.key) + OCTET_LENGTH(OLD.value)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER state_usage AFTER INSERT OR DELETE OR UPDATE OF value ON state
    FOR EACH ROW EXECUTE PROCEDURE state_usage();
CREATE FUNCTION state_change_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.key) + COALESCE(OCTET_LENGTH(NEW.old), 0));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.key) + COALESCE(OCTET_LENGTH(OLD.old), 0)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER state_change_usage AFTER INSERT OR DELETE ON state_change
    FOR EACH ROW EXECUTE PROCEDURE state_change_usage();
CREATE FUNCTION variable_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.key) + OCTET_LENGTH(NEW.value));
    END IF;
    IF TG_OP = 'UPDATE' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.key) + OCTET_LENGTH(NEW.value) - (100 + OCTET_LENGTH(OLD.key) + OCTET_LENGTH(OLD.value)));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.key) + OCTET_LENGTH(OLD.value)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER variable_usage AFTER INSERT OR DELETE OR UPDATE OF value ON variable
    FOR EACH ROW EXECUTE PROCEDURE variable_usage();
CREATE FUNCTION run_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 200 + COALESCE(OCTET_LENGTH(NEW.reason), 0) + COALESCE(OCTET_LENGTH(NEW.sealed), 0)
        + COALESCE(OCTET_LENGTH(NEW.summary), 0));
    END IF;
    IF TG_OP = 'UPDATE' THEN
        PERFORM add_usage(NEW.tenant, 200 + COALESCE(OCTET_LENGTH(NEW.reason), 0) + COALESCE(OCTET_LENGTH(NEW.sealed), 0)
        + COALESCE(OCTET_LENGTH(NEW.summary), 0) - (200 + COALESCE(OCTET_LENGTH(OLD.reason), 0) + COALESCE(OCTET_LENGTH(OLD.sealed), 0)
        + COALESCE(OCTET_LENGTH(OLD.summary), 0)));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(200 + COALESCE(OCTET_LENGTH(OLD.reason), 0) + COALESCE(OCTET_LENGTH(OLD.sealed), 0)
        + COALESCE(OCTET_LENGTH(OLD.summary), 0)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER run_usage AFTER INSERT OR DELETE OR UPDATE OF reason, sealed, summary ON run
    FOR EACH ROW EXECUTE PROCEDURE run_usage();
CREATE FUNCTION opening_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.body));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.body)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER opening_usage AFTER INSERT OR DELETE ON opening
    FOR EACH ROW EXECUTE PROCEDURE opening_usage();
CREATE FUNCTION turn_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.body));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.body)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER turn_usage AFTER INSERT OR DELETE ON turn
    FOR EACH ROW EXECUTE PROCEDURE turn_usage();
CREATE FUNCTION call_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.args) + COALESCE(OCTET_LENGTH(NEW.came), 0));
    END IF;
    IF TG_OP = 'UPDATE' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.args) + COALESCE(OCTET_LENGTH(NEW.came), 0) - (100 + OCTET_LENGTH(OLD.args) + COALESCE(OCTET_LENGTH(OLD.came), 0)));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.args) + COALESCE(OCTET_LENGTH(OLD.came), 0)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER call_usage AFTER INSERT OR DELETE OR UPDATE OF came ON call
    FOR EACH ROW EXECUTE PROCEDURE call_usage();
CREATE FUNCTION call_value_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.body));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.body)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER call_value_usage AFTER INSERT OR DELETE ON call_value
    FOR EACH ROW EXECUTE PROCEDURE call_value_usage();
CREATE FUNCTION event_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.body));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.body)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER event_usage AFTER INSERT OR DELETE ON event
    FOR EACH ROW EXECUTE PROCEDURE event_usage();
CREATE FUNCTION queue_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 200 + OCTET_LENGTH(NEW.message) + OCTET_LENGTH(NEW.origin));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(200 + OCTET_LENGTH(OLD.message) + OCTET_LENGTH(OLD.origin)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER queue_usage AFTER INSERT OR DELETE ON queue
    FOR EACH ROW EXECUTE PROCEDURE queue_usage();
CREATE FUNCTION changed_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.call) + COALESCE(OCTET_LENGTH(NEW.met), 0));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.call) + COALESCE(OCTET_LENGTH(OLD.met), 0)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER changed_usage AFTER INSERT OR DELETE ON changed
    FOR EACH ROW EXECUTE PROCEDURE changed_usage();
CREATE FUNCTION secret_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.hosts) + OCTET_LENGTH(NEW.sealed));
    END IF;
    IF TG_OP = 'UPDATE' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.hosts) + OCTET_LENGTH(NEW.sealed) - (100 + OCTET_LENGTH(OLD.hosts) + OCTET_LENGTH(OLD.sealed)));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.hosts) + OCTET_LENGTH(OLD.sealed)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER secret_usage AFTER INSERT OR DELETE OR UPDATE OF hosts, sealed ON secret
    FOR EACH ROW EXECUTE PROCEDURE secret_usage();
CREATE FUNCTION blob_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + NEW.bytes);
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OLD.bytes));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER blob_usage AFTER INSERT OR DELETE ON blob
    FOR EACH ROW EXECUTE PROCEDURE blob_usage();
CREATE FUNCTION session_file_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.delta));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.delta)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER session_file_usage AFTER INSERT OR DELETE ON session_file
    FOR EACH ROW EXECUTE PROCEDURE session_file_usage();
CREATE FUNCTION token_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100);
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER token_usage AFTER INSERT OR DELETE ON token
    FOR EACH ROW EXECUTE PROCEDURE token_usage();
CREATE FUNCTION conversation_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100);
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER conversation_usage AFTER INSERT OR DELETE ON conversation
    FOR EACH ROW EXECUTE PROCEDURE conversation_usage();
CREATE FUNCTION integration_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 100 + OCTET_LENGTH(NEW.body));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(100 + OCTET_LENGTH(OLD.body)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER integration_usage AFTER INSERT OR DELETE ON integration
    FOR EACH ROW EXECUTE PROCEDURE integration_usage();
CREATE FUNCTION memory_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_usage(NEW.tenant, 200 + OCTET_LENGTH(NEW.text));
    END IF;
    IF TG_OP = 'DELETE' THEN
        PERFORM add_usage(OLD.tenant, -(200 + OCTET_LENGTH(OLD.text)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_usage AFTER INSERT OR DELETE ON memory
    FOR EACH ROW EXECUTE PROCEDURE memory_usage();
-- A vector has no tenant of its own. If its item is removed, the item's trigger counts it.
CREATE FUNCTION memory_vector_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        PERFORM add_usage(tenant, OCTET_LENGTH(NEW.coordinates)) FROM memory
        WHERE number = NEW.memory;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        PERFORM add_usage(tenant, -OCTET_LENGTH(OLD.coordinates)) FROM memory
        WHERE number = OLD.memory;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_vector_usage AFTER INSERT OR DELETE OR UPDATE OF coordinates ON memory_vector
    FOR EACH ROW EXECUTE PROCEDURE memory_vector_usage();
CREATE FUNCTION memory_vectors_usage() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_usage(OLD.tenant, CAST(-COALESCE(SUM(OCTET_LENGTH(coordinates)), 0) AS BIGINT))
    FROM memory_vector WHERE memory = OLD.number;
    RETURN OLD;
END $$;
CREATE TRIGGER memory_vectors_usage BEFORE DELETE ON memory
    FOR EACH ROW EXECUTE PROCEDURE memory_vectors_usage();
INSERT INTO usage (tenant, shard, bytes)
SELECT tenant, 0, CAST(SUM(size) AS BIGINT) FROM (
    SELECT tenant, 100 AS size FROM session
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(message.content) + COALESCE(OCTET_LENGTH(message.whole), 0) AS size FROM message
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(state.key) + OCTET_LENGTH(state.value) AS size FROM state
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(state_change.key) + COALESCE(OCTET_LENGTH(state_change.old), 0) AS size FROM state_change
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(variable.key) + OCTET_LENGTH(variable.value) AS size FROM variable
    UNION ALL
    SELECT tenant, 200 + COALESCE(OCTET_LENGTH(run.reason), 0) + COALESCE(OCTET_LENGTH(run.sealed), 0)
        + COALESCE(OCTET_LENGTH(run.summary), 0) AS size FROM run
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(opening.body) AS size FROM opening
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(turn.body) AS size FROM turn
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(call.args) + COALESCE(OCTET_LENGTH(call.came), 0) AS size FROM call
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(call_value.body) AS size FROM call_value
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(event.body) AS size FROM event
    UNION ALL
    SELECT tenant, 200 + OCTET_LENGTH(queue.message) + OCTET_LENGTH(queue.origin) AS size FROM queue
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(changed.call) + COALESCE(OCTET_LENGTH(changed.met), 0) AS size FROM changed
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(secret.hosts) + OCTET_LENGTH(secret.sealed) AS size FROM secret
    UNION ALL
    SELECT tenant, 100 + blob.bytes AS size FROM blob
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(session_file.delta) AS size FROM session_file
    UNION ALL
    SELECT tenant, 100 AS size FROM token
    UNION ALL
    SELECT tenant, 100 AS size FROM conversation
    UNION ALL
    SELECT tenant, 100 + OCTET_LENGTH(integration.body) AS size FROM integration
    UNION ALL
    SELECT tenant, 200 + OCTET_LENGTH(memory.text) AS size FROM memory
    UNION ALL
    SELECT memory.tenant, OCTET_LENGTH(coordinates) FROM memory_vector
    JOIN memory ON memory.number = memory_vector.memory
) AS kept GROUP BY tenant;
