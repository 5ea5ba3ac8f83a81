ALTER TABLE session ALTER COLUMN instance SET DEFAULT md5(random()::text || clock_timestamp()::text);
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
