-- The export cursor: threads with runs whose traces have not arrived at the collector yet.
CREATE TABLE trace_debt (
    thread_id uuid PRIMARY KEY REFERENCES thread (id) ON DELETE CASCADE,
    since     timestamptz NOT NULL DEFAULT now(),
    -- First run that was not delivered.
    from_run  integer NOT NULL,
    -- Last run that is due; it may not have begun yet.
    to_run    integer NOT NULL
);
