-- When a thread came to rest, for lists: empty while it is under way, so that commits stay on their page (HOT), whatever lists ask for.
-- It is computed by the database, so that programs of earlier versions keep it as well; threads under way are few, and are sorted.
ALTER TABLE thread ADD COLUMN rested_at timestamptz
    GENERATED ALWAYS AS (CASE WHEN status <> 'busy' THEN updated_at END) STORED;

-- Lists of all tenants, and of one. What stands last is for counts, which read the index alone.
CREATE INDEX thread_rested ON thread (rested_at, id, status, tenant) WHERE root_id IS NULL AND status <> 'busy';
CREATE INDEX thread_rested_of_tenant ON thread (tenant, rested_at, id) WHERE root_id IS NULL AND status <> 'busy';
-- Threads that wait for somebody, or failed: few among many that are idle.
CREATE INDEX thread_unsettled ON thread (status, rested_at, id)
    WHERE root_id IS NULL AND status <> 'busy' AND status <> 'idle';
CREATE INDEX thread_created ON thread (tenant, created_at, id) WHERE root_id IS NULL;

-- What clients note of threads in words, each as a mark that is compared as a whole. Containment (@>) may not be asked of an index
-- before a row's policy is, because it could leak what it compares; the equality of ids may.
CREATE TABLE thread_mark (
    mark      uuid NOT NULL,
    thread_id uuid NOT NULL REFERENCES service_thread (thread_id) ON DELETE CASCADE,
    tenant    text NOT NULL,
    PRIMARY KEY (thread_id, mark)
);
CREATE INDEX thread_mark_found ON thread_mark (mark);
DROP INDEX service_thread_metadata;

CREATE FUNCTION mark_of(tenant text, name text, word text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT md5(tenant || E'\x1f' || name || E'\x1f' || word)::uuid
$$;

-- Every thread has a graph, which its own row names.
CREATE FUNCTION mark_thread() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM thread_mark WHERE thread_id = NEW.thread_id;
    END IF;
    INSERT INTO thread_mark (mark, thread_id, tenant)
        SELECT DISTINCT mark_of(NEW.tenant, noted.key, noted.value #>> '{}'), NEW.thread_id, NEW.tenant
        FROM jsonb_each(NEW.metadata) AS noted WHERE jsonb_typeof(noted.value) = 'string' AND noted.key <> 'graph_id';
    RETURN NULL;
END
$$;
CREATE TRIGGER thread_noted AFTER INSERT ON service_thread FOR EACH ROW EXECUTE FUNCTION mark_thread();
CREATE TRIGGER thread_noted_again AFTER UPDATE OF metadata ON service_thread FOR EACH ROW
    WHEN (OLD.metadata IS DISTINCT FROM NEW.metadata) EXECUTE FUNCTION mark_thread();

SELECT set_config('perihelion.all_tenants', 'on', true);
INSERT INTO thread_mark (mark, thread_id, tenant)
    SELECT DISTINCT mark_of(t.tenant, noted.key, noted.value #>> '{}'), t.thread_id, t.tenant
    FROM service_thread t, jsonb_each(t.metadata) AS noted
    WHERE jsonb_typeof(noted.value) = 'string' AND noted.key <> 'graph_id';

ALTER TABLE thread_mark ENABLE ROW LEVEL SECURITY;
ALTER TABLE thread_mark FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON thread_mark USING (
    CASE WHEN (SELECT current_setting('perihelion.all_tenants', true)) = 'on' THEN true
    ELSE tenant = (SELECT current_setting('perihelion.tenant', true)) END);
