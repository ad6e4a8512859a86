-- When a thread came to rest, for lists: empty while it is under way, so that a commit touches none of these indexes.
ALTER TABLE thread ADD COLUMN rested_at INTEGER
    GENERATED ALWAYS AS (CASE WHEN status <> 'busy' THEN updated_at END) VIRTUAL;

-- Lists of all tenants, and of one. What stands last is for counts, which read the index alone.
CREATE INDEX thread_rested ON thread (rested_at, id, status, tenant) WHERE root_id IS NULL AND status <> 'busy';
CREATE INDEX thread_rested_of_tenant ON thread (tenant, rested_at, id) WHERE root_id IS NULL AND status <> 'busy';
-- Threads that wait for somebody, or failed: few among many that are idle.
CREATE INDEX thread_unsettled ON thread (status, rested_at, id)
    WHERE root_id IS NULL AND status <> 'busy' AND status <> 'idle';
CREATE INDEX thread_created ON thread (tenant, created_at, id) WHERE root_id IS NULL;
