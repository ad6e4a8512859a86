-- How many threads and runs have each status, so that counts do not read every thread.
CREATE TABLE status_count (
    tenant  TEXT NOT NULL,
    -- thread (at the top) or run.
    subject TEXT NOT NULL,
    -- The thread's graph; empty for runs.
    graph   TEXT NOT NULL,
    -- A thread at rest whose last run failed counts as failed.
    status  TEXT NOT NULL,
    number  INTEGER NOT NULL,
    PRIMARY KEY (tenant, subject, graph, status)
) WITHOUT ROWID;

CREATE TRIGGER thread_made AFTER INSERT ON thread WHEN NEW.root_id IS NULL
BEGIN
    INSERT INTO status_count VALUES (NEW.tenant, 'thread', NEW.graph,
        CASE WHEN NEW.status = 'idle' AND NEW.error IS NOT NULL THEN 'failed' ELSE NEW.status END, 1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER thread_changed AFTER UPDATE OF status, error, graph, tenant ON thread WHEN NEW.root_id IS NULL
    AND (OLD.status, OLD.error IS NULL, OLD.graph, OLD.tenant) <> (NEW.status, NEW.error IS NULL, NEW.graph, NEW.tenant)
BEGIN
    INSERT INTO status_count VALUES (OLD.tenant, 'thread', OLD.graph,
        CASE WHEN OLD.status = 'idle' AND OLD.error IS NOT NULL THEN 'failed' ELSE OLD.status END, -1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
    INSERT INTO status_count VALUES (NEW.tenant, 'thread', NEW.graph,
        CASE WHEN NEW.status = 'idle' AND NEW.error IS NOT NULL THEN 'failed' ELSE NEW.status END, 1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER thread_deleted AFTER DELETE ON thread WHEN OLD.root_id IS NULL
BEGIN
    INSERT INTO status_count VALUES (OLD.tenant, 'thread', OLD.graph,
        CASE WHEN OLD.status = 'idle' AND OLD.error IS NOT NULL THEN 'failed' ELSE OLD.status END, -1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;

CREATE TRIGGER run_made AFTER INSERT ON service_run
BEGIN
    INSERT INTO status_count VALUES (NEW.tenant, 'run', '', NEW.status, 1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER run_changed AFTER UPDATE OF status, tenant ON service_run WHEN (OLD.status, OLD.tenant) <> (NEW.status, NEW.tenant)
BEGIN
    INSERT INTO status_count VALUES (OLD.tenant, 'run', '', OLD.status, -1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
    INSERT INTO status_count VALUES (NEW.tenant, 'run', '', NEW.status, 1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;
CREATE TRIGGER run_deleted AFTER DELETE ON service_run
BEGIN
    INSERT INTO status_count VALUES (OLD.tenant, 'run', '', OLD.status, -1)
        ON CONFLICT DO UPDATE SET number = number + excluded.number;
END;

INSERT INTO status_count
    SELECT tenant, 'thread', graph, CASE WHEN status = 'idle' AND error IS NOT NULL THEN 'failed' ELSE status END AS shown, count(*)
    FROM thread WHERE root_id IS NULL GROUP BY tenant, graph, shown
    UNION ALL
    SELECT tenant, 'run', '', status, count(*) FROM service_run GROUP BY tenant, status;
