-- Whether an answer came while the thread was busy: the end of its run then queues it.
ALTER TABLE thread ADD COLUMN woken boolean NOT NULL DEFAULT false;

-- What workers look through once a second: threads under way and threads queued, and no others. A
-- commit changes neither the column nor the predicate, so its update stays on the row's page (HOT).
CREATE INDEX thread_active ON thread (status)
    WHERE status IN ('queued', 'busy') AND root_id IS NULL;

-- Calls the workers to a thread, in the transaction that queues it. Where no worker ever ran, its queue
-- does not exist, and the thread's status alone says that it waits.
CREATE FUNCTION wake_thread(thread uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF to_regproc('graphile_worker.add_job') IS NOT NULL THEN
        PERFORM graphile_worker.add_job(
            'wake_thread',
            payload := json_build_object('thread', thread),
            job_key := thread::text
        );
    END IF;
    RETURN true;
END
$$;
