-- The thread's newest step when a run ended: what its client is shown is the state there, no matter what came after it.
ALTER TABLE service_run ADD COLUMN last_step bigint;

-- Threads that were made for one run each, and go some time after it.
CREATE INDEX service_run_temporary ON service_run (updated_at) WHERE temporary;
-- The runs of a tenant that changed last.
CREATE INDEX service_run_changed ON service_run (tenant, updated_at, id);
