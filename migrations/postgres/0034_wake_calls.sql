-- The wake-up calls that no worker has taken yet, at most one for each thread. A call is a hint without state: the thread's status
-- says that it waits, and workers look for that, so a call that is lost does no harm.
CREATE TABLE wake_call (
    thread_id uuid PRIMARY KEY,
    called_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Calls are taken oldest first.
CREATE INDEX wake_call_at ON wake_call (called_at);

-- Calls the workers to a thread, in the transaction that queues it. Programs from before this migration, which looked for calls in
-- the schema graphile_worker, find the thread at their next look; the schema is left alone, and nothing uses it any more.
CREATE OR REPLACE FUNCTION wake_thread(thread uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wake_call (thread_id) VALUES (thread) ON CONFLICT DO NOTHING;
    PERFORM pg_notify('perihelion_wake', '');
    RETURN true;
END
$$;
