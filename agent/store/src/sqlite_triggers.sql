CREATE TRIGGER session_created AFTER INSERT ON session WHEN new.instance = '' BEGIN
    UPDATE session SET instance = lower(hex(randomblob(16)))
    WHERE tenant = new.tenant AND id = new.id;
END;
-- The short columns of the queue. In a row, most of them come after the message, so a query without
-- this index would read every message.
CREATE INDEX queue_of_place ON queue (tenant, position, id, session, created, priority, needs);
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
