-- A change of a status adds its two rows in one statement. Each statement of a trigger costs as much as the row that it adds.
CREATE OR REPLACE FUNCTION count_thread() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO status_count
        SELECT tenant, 'thread', graph, CASE WHEN status = 'idle' AND has_error THEN 'failed' ELSE status END, number
        FROM (VALUES
            (OLD.tenant, OLD.graph, OLD.status, OLD.error IS NOT NULL, -1),
            (NEW.tenant, NEW.graph, NEW.status, NEW.error IS NOT NULL, 1)
        ) AS changed (tenant, graph, status, has_error, number)
        -- An inserted row has no old one, a deleted row no new one.
        WHERE tenant IS NOT NULL;
    IF random() < 0.002 THEN
        PERFORM sum_status_counts(COALESCE(NEW.tenant, OLD.tenant));
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION count_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO status_count
        SELECT tenant, 'run', '', status, number
        FROM (VALUES (OLD.tenant, OLD.status, -1), (NEW.tenant, NEW.status, 1)) AS changed (tenant, status, number)
        WHERE tenant IS NOT NULL;
    IF random() < 0.002 THEN
        PERFORM sum_status_counts(COALESCE(NEW.tenant, OLD.tenant));
    END IF;
    RETURN NULL;
END
$$;
