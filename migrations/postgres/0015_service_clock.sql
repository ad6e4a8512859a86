-- Runs that begin by the clock: whose clock, what they order, and which process begins one now.
ALTER TABLE service_cron ADD COLUMN timezone text;
ALTER TABLE service_cron ADD COLUMN keeps_thread boolean NOT NULL DEFAULT false;
ALTER TABLE service_cron ADD COLUMN user_id text NOT NULL DEFAULT '';
-- What a run of it is accepted with.
ALTER TABLE service_cron ADD COLUMN work jsonb NOT NULL DEFAULT '{}';
ALTER TABLE service_cron ADD COLUMN claimed_by text;
ALTER TABLE service_cron ADD COLUMN claimed_until timestamptz;

-- What is sent to an address when a run has ended.
CREATE TABLE service_delivery (
    id            uuid PRIMARY KEY NOT NULL,
    tenant        text NOT NULL,
    -- No reference: it outlives a run whose thread goes with it.
    run_id        uuid NOT NULL,
    -- webhook, a2a.
    kind          text NOT NULL,
    url           text NOT NULL,
    headers       jsonb NOT NULL DEFAULT '{}',
    -- Made when it is first sent, and the same in every attempt.
    payload       jsonb,
    attempts      bigint NOT NULL DEFAULT 0,
    next_at       timestamptz NOT NULL,
    claimed_until timestamptz,
    -- Why it was given up, and when.
    problem       text,
    ended_at      timestamptz,
    created_at    timestamptz NOT NULL
);
CREATE INDEX service_delivery_open ON service_delivery (next_at) WHERE ended_at IS NULL;
CREATE INDEX service_delivery_run ON service_delivery (run_id);

-- Addresses that hear of a task.
CREATE TABLE service_push (
    tenant     text NOT NULL,
    task_id    uuid NOT NULL,
    id         text NOT NULL,
    -- The configuration as its client gave it.
    config     jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, task_id, id)
);
