-- What is noted of a thread says whose it is itself; the default is the tenant that the transaction acts for.
ALTER TABLE service_thread ADD COLUMN tenant text DEFAULT current_setting('perihelion.tenant', true);
UPDATE service_thread SET tenant = t.tenant FROM thread t WHERE t.id = thread_id;
ALTER TABLE service_thread ALTER COLUMN tenant SET NOT NULL;

-- Runs that somebody wants ended, for the process that holds the thread to hear of.
CREATE TABLE thread_stop (
    thread_id uuid PRIMARY KEY REFERENCES thread (id) ON DELETE CASCADE,
    tenant    text NOT NULL,
    -- The fencing token of the holder that is meant; a later one is not.
    fence     bigint NOT NULL,
    asked_at  timestamptz NOT NULL
);

-- Threads, and what the service keeps of their runs, are seen by their tenant alone, as documents are since 0017. Who acts for all
-- comes first: the engine does, and then nothing else is asked. A CASE rather than an OR, because the planner takes it for half of the
-- rows: by an OR it expects one row in thousands, and joins in the wrong order.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'thread', 'thread_stop', 'service_thread', 'service_run', 'service_cron', 'service_delivery', 'service_push'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY of_tenant ON %I USING (
                CASE WHEN (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'' THEN true
                ELSE tenant = (SELECT current_setting(''perihelion.tenant'', true)) END)',
            name);
    END LOOP;
    -- Rows of a thread are seen where the thread is; its own policy decides.
    FOREACH name IN ARRAY ARRAY[
        'step', 'snapshot', 'pending', 'effect', 'effect_count', 'run', 'event', 'trace_debt'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY of_thread ON %I USING (
                CASE WHEN (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'' THEN true
                ELSE EXISTS (SELECT FROM thread t WHERE t.id = thread_id) END)',
            name);
    END LOOP;
END $$;
