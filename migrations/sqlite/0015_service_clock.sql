-- Runs that begin by the clock: whose clock, what they order, and which process begins one now.
ALTER TABLE service_cron ADD COLUMN timezone TEXT;
ALTER TABLE service_cron ADD COLUMN keeps_thread INTEGER NOT NULL DEFAULT 0;
ALTER TABLE service_cron ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
-- What a run of it is accepted with.
ALTER TABLE service_cron ADD COLUMN work TEXT NOT NULL DEFAULT '{}';
ALTER TABLE service_cron ADD COLUMN claimed_by TEXT;
ALTER TABLE service_cron ADD COLUMN claimed_until INTEGER;

-- What is sent to an address when a run has ended.
CREATE TABLE service_delivery (
    id            BLOB PRIMARY KEY NOT NULL,
    tenant        TEXT NOT NULL,
    -- No reference: it outlives a run whose thread goes with it.
    run_id        BLOB NOT NULL,
    -- webhook, a2a.
    kind          TEXT NOT NULL,
    url           TEXT NOT NULL,
    headers       TEXT NOT NULL DEFAULT '{}',
    -- Made when it is first sent, and the same in every attempt.
    payload       TEXT,
    attempts      INTEGER NOT NULL DEFAULT 0,
    next_at       INTEGER NOT NULL,
    claimed_until INTEGER,
    -- Why it was given up, and when.
    problem       TEXT,
    ended_at      INTEGER,
    created_at    INTEGER NOT NULL
);
CREATE INDEX service_delivery_open ON service_delivery (next_at) WHERE ended_at IS NULL;
CREATE INDEX service_delivery_run ON service_delivery (run_id);

-- Addresses that hear of a task.
CREATE TABLE service_push (
    tenant     TEXT NOT NULL,
    task_id    BLOB NOT NULL,
    id         TEXT NOT NULL,
    -- The configuration as its client gave it.
    config     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, task_id, id)
);
