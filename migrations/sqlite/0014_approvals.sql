-- Requests for approval and what became of each; the question itself stands in its thread.
CREATE TABLE approval_request (
    -- The id of the thread's interrupt.
    id         BLOB PRIMARY KEY,
    tenant     TEXT NOT NULL,
    thread_id  BLOB NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    agent      TEXT NOT NULL,
    tool       TEXT NOT NULL,
    -- pending, approved, denied, timed_out, expired
    status     TEXT NOT NULL,
    asked_at   INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by TEXT
);
CREATE INDEX approval_request_due ON approval_request (expires_at) WHERE status = 'pending';
CREATE INDEX approval_request_thread ON approval_request (thread_id);
CREATE INDEX approval_request_tenant ON approval_request (tenant, asked_at);
