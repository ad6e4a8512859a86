-- What the service keeps of a thread beside the thread itself.
CREATE TABLE service_thread (
    thread_id  BLOB PRIMARY KEY NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    metadata   TEXT NOT NULL DEFAULT '{}',
    config     TEXT NOT NULL DEFAULT '{}',
    updated_at INTEGER NOT NULL
);

-- Runs as clients ask for them: one may take several runs of the engine, when its process dies.
CREATE TABLE service_run (
    id          BLOB PRIMARY KEY NOT NULL,
    thread_id   BLOB NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    assistant   BLOB NOT NULL,
    tenant      TEXT NOT NULL,
    -- pending, running, success, error, interrupted, timeout.
    status      TEXT NOT NULL,
    multitask   TEXT NOT NULL,
    -- What was asked for, and what the client noted of it.
    kwargs      TEXT NOT NULL,
    metadata    TEXT NOT NULL,
    -- Why it failed: {"error", "message"}.
    error       TEXT,
    -- interrupt or rollback, once somebody wants it stopped.
    cancel      TEXT,
    -- Whether its thread goes with it.
    temporary   INTEGER NOT NULL DEFAULT 0,
    -- The process that drives it, and when that one was last heard of.
    owner       TEXT,
    seen_at     INTEGER,
    -- The thread's newest step and event when it began, and the newest event when it ended.
    base_step   INTEGER,
    first_event INTEGER,
    last_event  INTEGER,
    attempt     INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
);
CREATE INDEX service_run_thread ON service_run (thread_id, created_at);
-- One run of a thread is driven at a time, whichever processes begin one.
CREATE UNIQUE INDEX service_run_driven ON service_run (thread_id) WHERE status = 'running';
-- What processes look through.
CREATE INDEX service_run_open ON service_run (status, due_at) WHERE status IN ('pending', 'running');

CREATE TABLE service_assistant (
    id          BLOB NOT NULL,
    version     INTEGER NOT NULL,
    latest      INTEGER NOT NULL,
    tenant      TEXT NOT NULL,
    graph       TEXT NOT NULL,
    name        TEXT NOT NULL,
    description TEXT,
    config      TEXT NOT NULL,
    context     TEXT NOT NULL,
    metadata    TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (id, version)
);

-- Items that clients keep, under a path of names.
CREATE TABLE service_item (
    tenant     TEXT NOT NULL,
    -- The names, each ended by U+001F.
    namespace  TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, namespace, key)
);

-- Runs that begin by the clock.
CREATE TABLE service_cron (
    id         BLOB PRIMARY KEY NOT NULL,
    tenant     TEXT NOT NULL,
    assistant  BLOB NOT NULL,
    -- None: each run has a thread of its own.
    thread_id  BLOB REFERENCES thread (id) ON DELETE CASCADE,
    schedule   TEXT NOT NULL,
    payload    TEXT NOT NULL,
    metadata   TEXT NOT NULL,
    enabled    INTEGER NOT NULL DEFAULT 1,
    next_at    INTEGER,
    end_at     INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX service_cron_next ON service_cron (next_at) WHERE enabled;
