-- What runs took, for the budgets of a tenant's day; it stays when its thread is deleted.
CREATE TABLE spending (
    tenant     TEXT NOT NULL,
    -- The day in UTC on which the run ended, as YYYY-MM-DD.
    day        TEXT NOT NULL,
    thread_id  BLOB NOT NULL,
    turn       INTEGER NOT NULL,
    run_id     BLOB NOT NULL,
    tokens     INTEGER NOT NULL,
    nano_usd   INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    steps      INTEGER NOT NULL,
    millis     INTEGER NOT NULL,
    PRIMARY KEY (thread_id, turn, run_id)
);
CREATE INDEX spending_day ON spending (tenant, day);
