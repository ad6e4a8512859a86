-- What runs took, for the budgets of a tenant's day; it stays when its thread is deleted.
CREATE TABLE spending (
    tenant     text NOT NULL,
    -- The day in UTC on which the run ended, as YYYY-MM-DD.
    day        text NOT NULL,
    thread_id  uuid NOT NULL,
    turn       bigint NOT NULL,
    run_id     uuid NOT NULL,
    tokens     bigint NOT NULL,
    nano_usd   bigint NOT NULL,
    tool_calls bigint NOT NULL,
    steps      bigint NOT NULL,
    millis     bigint NOT NULL,
    PRIMARY KEY (thread_id, turn, run_id)
);
CREATE INDEX spending_day ON spending (tenant, day);
