-- Threads at rest whose last run failed: few among many that are idle, and listed with those that failed.
CREATE INDEX thread_failed_at_rest ON thread (tenant, rested_at, id)
    WHERE root_id IS NULL AND status = 'idle' AND error IS NOT NULL;
