-- How many threads and runs have each status, so that counts do not read every thread. A change adds a row, in its own transaction,
-- rather than changing one that all would wait for: the count is the sum. One change in five hundred replaces its tenant's rows by
-- their sums, so that there are few.
CREATE TABLE status_count (
    tenant  text NOT NULL,
    -- thread (at the top) or run.
    subject text NOT NULL,
    -- The thread's graph; empty for runs.
    graph   text NOT NULL,
    -- A thread at rest whose last run failed counts as failed.
    status  text NOT NULL,
    number  bigint NOT NULL
);
CREATE INDEX status_count_tenant ON status_count (tenant);

CREATE FUNCTION sum_status_counts(of_tenant text) RETURNS void LANGUAGE sql AS $$
    WITH found AS (
        SELECT ctid FROM status_count WHERE tenant = of_tenant LIMIT 10000 FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM status_count WHERE ctid IN (SELECT ctid FROM found) RETURNING tenant, subject, graph, status, number
    )
    INSERT INTO status_count
        SELECT tenant, subject, graph, status, sum(number) FROM gone
        GROUP BY tenant, subject, graph, status HAVING sum(number) <> 0
$$;

CREATE FUNCTION count_thread() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO status_count VALUES (OLD.tenant, 'thread', OLD.graph,
            CASE WHEN OLD.status = 'idle' AND OLD.error IS NOT NULL THEN 'failed' ELSE OLD.status END, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO status_count VALUES (NEW.tenant, 'thread', NEW.graph,
            CASE WHEN NEW.status = 'idle' AND NEW.error IS NOT NULL THEN 'failed' ELSE NEW.status END, 1);
    END IF;
    IF random() < 0.002 THEN
        PERFORM sum_status_counts(COALESCE(NEW.tenant, OLD.tenant));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER thread_made AFTER INSERT ON thread FOR EACH ROW
    WHEN (NEW.root_id IS NULL) EXECUTE FUNCTION count_thread();
CREATE TRIGGER thread_changed AFTER UPDATE OF status, error, graph, tenant ON thread FOR EACH ROW
    WHEN (NEW.root_id IS NULL AND (OLD.status, OLD.error IS NULL, OLD.graph, OLD.tenant)
        IS DISTINCT FROM (NEW.status, NEW.error IS NULL, NEW.graph, NEW.tenant)) EXECUTE FUNCTION count_thread();
CREATE TRIGGER thread_deleted AFTER DELETE ON thread FOR EACH ROW
    WHEN (OLD.root_id IS NULL) EXECUTE FUNCTION count_thread();

CREATE FUNCTION count_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO status_count VALUES (OLD.tenant, 'run', '', OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO status_count VALUES (NEW.tenant, 'run', '', NEW.status, 1);
    END IF;
    IF random() < 0.002 THEN
        PERFORM sum_status_counts(COALESCE(NEW.tenant, OLD.tenant));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER run_made AFTER INSERT ON service_run FOR EACH ROW EXECUTE FUNCTION count_run();
CREATE TRIGGER run_changed AFTER UPDATE OF status, tenant ON service_run FOR EACH ROW
    WHEN ((OLD.status, OLD.tenant) IS DISTINCT FROM (NEW.status, NEW.tenant)) EXECUTE FUNCTION count_run();
CREATE TRIGGER run_deleted AFTER DELETE ON service_run FOR EACH ROW EXECUTE FUNCTION count_run();

SELECT set_config('perihelion.all_tenants', 'on', true);
INSERT INTO status_count
    SELECT tenant, 'thread', graph, CASE WHEN status = 'idle' AND error IS NOT NULL THEN 'failed' ELSE status END, count(*)
    FROM thread WHERE root_id IS NULL GROUP BY 1, 3, 4
    UNION ALL
    SELECT tenant, 'run', '', status, count(*) FROM service_run GROUP BY tenant, status;

ALTER TABLE status_count ENABLE ROW LEVEL SECURITY;
ALTER TABLE status_count FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON status_count USING (
    CASE WHEN (SELECT current_setting('perihelion.all_tenants', true)) = 'on' THEN true
    ELSE tenant = (SELECT current_setting('perihelion.tenant', true)) END);
