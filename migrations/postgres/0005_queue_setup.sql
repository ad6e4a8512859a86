-- As before, but calls nobody while a worker sets the queue up (it holds the lock exclusively): its
-- tables and functions change meanwhile. The thread's status says that it waits, and workers look for that.
-- The key is the first half of the MD5 of 'perihelion queue'.
CREATE OR REPLACE FUNCTION wake_thread(thread uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_xact_lock_shared(-5682727480907227257) THEN
        IF to_regproc('graphile_worker.add_job') IS NOT NULL THEN
            PERFORM graphile_worker.add_job(
                'wake_thread',
                payload := json_build_object('thread', thread),
                job_key := thread::text
            );
        END IF;
    END IF;
    RETURN true;
END
$$;
