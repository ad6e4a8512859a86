-- Requests for approval and what became of each; the question itself stands in its thread.
CREATE TABLE approval_request (
    -- The id of the thread's interrupt.
    id         uuid PRIMARY KEY,
    tenant     text NOT NULL,
    thread_id  uuid NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    agent      text NOT NULL,
    tool       text NOT NULL,
    -- pending, approved, denied, timed_out, expired
    status     text NOT NULL,
    asked_at   timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    decided_at timestamptz,
    decided_by text
);
CREATE INDEX approval_request_due ON approval_request (expires_at) WHERE status = 'pending';
CREATE INDEX approval_request_thread ON approval_request (thread_id);
CREATE INDEX approval_request_tenant ON approval_request (tenant, asked_at);
