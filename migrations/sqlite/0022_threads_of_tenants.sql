-- What is noted of a thread says whose it is itself, as the thread does.
ALTER TABLE service_thread ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
UPDATE service_thread SET tenant = (SELECT t.tenant FROM thread t WHERE t.id = service_thread.thread_id);

-- Runs that somebody wants ended, for the process that holds the thread to hear of.
CREATE TABLE thread_stop (
    thread_id BLOB PRIMARY KEY NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    tenant    TEXT NOT NULL,
    -- The fencing token of the holder that is meant; a later one is not.
    fence     INTEGER NOT NULL,
    asked_at  INTEGER NOT NULL
);
