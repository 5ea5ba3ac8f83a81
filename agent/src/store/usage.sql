-- The number of bytes that each tenant keeps. Triggers count each row when it is added, changed or
-- removed, so the number cannot differ from the rows. A row counts with its texts and 100 bytes.
CREATE TABLE call_value (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, run, digest),
    FOREIGN KEY (tenant, run) REFERENCES run (tenant, id) ON DELETE CASCADE
) STRICT;
ALTER TABLE call ADD COLUMN shared BLOB;
CREATE TABLE usage (
    tenant TEXT NOT NULL,
    shard INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant, shard)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER session_added AFTER INSERT ON session BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100)
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER session_deleted AFTER DELETE ON session BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER message_added AFTER INSERT ON message BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.content) + COALESCE(OCTET_LENGTH(new.whole), 0))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER message_deleted AFTER DELETE ON message BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.content) + COALESCE(OCTET_LENGTH(old.whole), 0)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER state_added AFTER INSERT ON state BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.key) + OCTET_LENGTH(new.value))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER state_changed AFTER UPDATE OF value ON state BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.key) + OCTET_LENGTH(new.value) - (100 + OCTET_LENGTH(old.key) + OCTET_LENGTH(old.value)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER state_deleted AFTER DELETE ON state BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.key) + OCTET_LENGTH(old.value)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER state_change_added AFTER INSERT ON state_change BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.key) + COALESCE(OCTET_LENGTH(new.old), 0))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER state_change_deleted AFTER DELETE ON state_change BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.key) + COALESCE(OCTET_LENGTH(old.old), 0)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER variable_added AFTER INSERT ON variable BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.key) + OCTET_LENGTH(new.value))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER variable_changed AFTER UPDATE OF value ON variable BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.key) + OCTET_LENGTH(new.value) - (100 + OCTET_LENGTH(old.key) + OCTET_LENGTH(old.value)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER variable_deleted AFTER DELETE ON variable BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.key) + OCTET_LENGTH(old.value)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER run_added AFTER INSERT ON run BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 200 + COALESCE(OCTET_LENGTH(new.reason), 0) + COALESCE(OCTET_LENGTH(new.sealed), 0)
        + COALESCE(OCTET_LENGTH(new.summary), 0))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER run_changed AFTER UPDATE OF reason, sealed, summary ON run BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 200 + COALESCE(OCTET_LENGTH(new.reason), 0) + COALESCE(OCTET_LENGTH(new.sealed), 0)
        + COALESCE(OCTET_LENGTH(new.summary), 0) - (200 + COALESCE(OCTET_LENGTH(old.reason), 0) + COALESCE(OCTET_LENGTH(old.sealed), 0)
        + COALESCE(OCTET_LENGTH(old.summary), 0)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER run_deleted AFTER DELETE ON run BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(200 + COALESCE(OCTET_LENGTH(old.reason), 0) + COALESCE(OCTET_LENGTH(old.sealed), 0)
        + COALESCE(OCTET_LENGTH(old.summary), 0)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER opening_added AFTER INSERT ON opening BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.body))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER opening_deleted AFTER DELETE ON opening BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.body)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER turn_added AFTER INSERT ON turn BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.body))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER turn_deleted AFTER DELETE ON turn BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.body)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER call_added AFTER INSERT ON call BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.args) + COALESCE(OCTET_LENGTH(new.came), 0))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER call_changed AFTER UPDATE OF came ON call BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.args) + COALESCE(OCTET_LENGTH(new.came), 0) - (100 + OCTET_LENGTH(old.args) + COALESCE(OCTET_LENGTH(old.came), 0)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER call_deleted AFTER DELETE ON call BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.args) + COALESCE(OCTET_LENGTH(old.came), 0)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER call_value_added AFTER INSERT ON call_value BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.body))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER call_value_deleted AFTER DELETE ON call_value BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.body)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER event_added AFTER INSERT ON event BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.body))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER event_deleted AFTER DELETE ON event BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.body)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER queue_added AFTER INSERT ON queue BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 200 + OCTET_LENGTH(new.message) + OCTET_LENGTH(new.origin))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER queue_deleted AFTER DELETE ON queue BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(200 + OCTET_LENGTH(old.message) + OCTET_LENGTH(old.origin)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER changed_added AFTER INSERT ON changed BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.call) + COALESCE(OCTET_LENGTH(new.met), 0))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER changed_deleted AFTER DELETE ON changed BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.call) + COALESCE(OCTET_LENGTH(old.met), 0)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER secret_added AFTER INSERT ON secret BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.hosts) + OCTET_LENGTH(new.sealed))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER secret_changed AFTER UPDATE OF hosts, sealed ON secret BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.hosts) + OCTET_LENGTH(new.sealed) - (100 + OCTET_LENGTH(old.hosts) + OCTET_LENGTH(old.sealed)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER secret_deleted AFTER DELETE ON secret BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.hosts) + OCTET_LENGTH(old.sealed)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER blob_added AFTER INSERT ON blob BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + new.bytes)
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER blob_deleted AFTER DELETE ON blob BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + old.bytes))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER session_file_added AFTER INSERT ON session_file BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.delta))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER session_file_deleted AFTER DELETE ON session_file BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.delta)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER token_added AFTER INSERT ON token BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100)
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER token_deleted AFTER DELETE ON token BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER conversation_added AFTER INSERT ON conversation BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100)
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER conversation_deleted AFTER DELETE ON conversation BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER integration_added AFTER INSERT ON integration BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 100 + OCTET_LENGTH(new.body))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER integration_deleted AFTER DELETE ON integration BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(100 + OCTET_LENGTH(old.body)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (new.tenant, 0, 200 + OCTET_LENGTH(new.text))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER memory_deleted AFTER DELETE ON memory BEGIN
    INSERT INTO usage (tenant, shard, bytes) VALUES (old.tenant, 0, -(200 + OCTET_LENGTH(old.text)))
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
-- A vector has no tenant of its own. If its item is removed, the item's trigger counts it.
CREATE TRIGGER memory_vector_added AFTER INSERT ON memory_vector BEGIN
    INSERT INTO usage (tenant, shard, bytes)
    SELECT tenant, 0, OCTET_LENGTH(new.coordinates) FROM memory WHERE number = new.memory
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER memory_vector_changed AFTER UPDATE OF coordinates ON memory_vector BEGIN
    INSERT INTO usage (tenant, shard, bytes)
    SELECT tenant, 0, OCTET_LENGTH(new.coordinates) - OCTET_LENGTH(old.coordinates)
    FROM memory WHERE number = new.memory
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER memory_vector_deleted AFTER DELETE ON memory_vector BEGIN
    INSERT INTO usage (tenant, shard, bytes)
    SELECT tenant, 0, -OCTET_LENGTH(old.coordinates) FROM memory WHERE number = old.memory
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER memory_vectors_deleted BEFORE DELETE ON memory BEGIN
    INSERT INTO usage (tenant, shard, bytes)
    SELECT old.tenant, 0, -COALESCE(SUM(OCTET_LENGTH(coordinates)), 0) FROM memory_vector
    WHERE memory = old.number
    ON CONFLICT (tenant, shard) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
INSERT INTO usage (tenant, shard, bytes)
SELECT tenant, 0, CAST(SUM(size) AS INTEGER) FROM (
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
