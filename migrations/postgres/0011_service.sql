-- What the service keeps of a thread beside the thread itself.
CREATE TABLE service_thread (
    thread_id  uuid PRIMARY KEY REFERENCES thread (id) ON DELETE CASCADE,
    metadata   jsonb NOT NULL DEFAULT '{}',
    config     jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX service_thread_metadata ON service_thread USING gin (metadata jsonb_path_ops);

-- Runs as clients ask for them: one may take several runs of the engine, when its process dies.
CREATE TABLE service_run (
    id          uuid PRIMARY KEY,
    thread_id   uuid NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    assistant   uuid NOT NULL,
    tenant      text NOT NULL,
    -- pending, running, success, error, interrupted, timeout.
    status      text NOT NULL,
    multitask   text NOT NULL,
    -- What was asked for, and what the client noted of it.
    kwargs      jsonb NOT NULL,
    metadata    jsonb NOT NULL,
    -- Why it failed: {"error", "message"}.
    error       jsonb,
    -- interrupt or rollback, once somebody wants it stopped.
    cancel      text,
    -- Whether its thread goes with it.
    temporary   boolean NOT NULL DEFAULT false,
    -- The process that drives it, and when that one was last heard of.
    owner       text,
    seen_at     timestamptz,
    -- The thread's newest step and event when it began, and the newest event when it ended.
    base_step   bigint,
    first_event bigint,
    last_event  bigint,
    attempt     bigint NOT NULL DEFAULT 0,
    due_at      timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);
CREATE INDEX service_run_thread ON service_run (thread_id, created_at);
-- One run of a thread is driven at a time, whichever processes begin one.
CREATE UNIQUE INDEX service_run_driven ON service_run (thread_id) WHERE status = 'running';
-- What processes look through.
CREATE INDEX service_run_open ON service_run (status, due_at) WHERE status IN ('pending', 'running');

CREATE TABLE service_assistant (
    id          uuid NOT NULL,
    version     bigint NOT NULL,
    latest      boolean NOT NULL,
    tenant      text NOT NULL,
    graph       text NOT NULL,
    name        text NOT NULL,
    description text,
    config      jsonb NOT NULL,
    context     jsonb NOT NULL,
    metadata    jsonb NOT NULL,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (id, version)
);

-- Items that clients keep, under a path of names.
CREATE TABLE service_item (
    tenant     text NOT NULL,
    -- The names, each ended by U+001F.
    namespace  text NOT NULL,
    key        text NOT NULL,
    value      jsonb NOT NULL,
    expires_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, namespace, key)
);

-- Runs that begin by the clock.
CREATE TABLE service_cron (
    id         uuid PRIMARY KEY,
    tenant     text NOT NULL,
    assistant  uuid NOT NULL,
    -- None: each run has a thread of its own.
    thread_id  uuid REFERENCES thread (id) ON DELETE CASCADE,
    schedule   text NOT NULL,
    payload    jsonb NOT NULL,
    metadata   jsonb NOT NULL,
    enabled    boolean NOT NULL DEFAULT true,
    next_at    timestamptz,
    end_at     timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX service_cron_next ON service_cron (next_at) WHERE enabled;
