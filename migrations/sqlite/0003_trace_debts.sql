-- The export cursor: threads with runs whose traces have not arrived at the collector yet.
CREATE TABLE trace_debt (
    thread_id BLOB PRIMARY KEY NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    -- First run that was not delivered.
    from_run  INTEGER NOT NULL,
    -- Last run that is due; it may not have begun yet.
    to_run    INTEGER NOT NULL,
    since     INTEGER NOT NULL
) WITHOUT ROWID;
