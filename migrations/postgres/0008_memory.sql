-- What agents learned: a task, and the calls that solved it, with values as parameters.
CREATE TABLE skill (
    id         text NOT NULL,
    tenant     text NOT NULL,
    agent      text NOT NULL,
    server     text NOT NULL,
    task       text NOT NULL,
    -- The calls, and the tools' definitions by name as hashes.
    steps      jsonb NOT NULL,
    tools      jsonb NOT NULL,
    outcome    text NOT NULL,
    successes  bigint NOT NULL,
    failures   bigint NOT NULL,
    is_stale   boolean NOT NULL DEFAULT false,
    -- The work that it was learned from last, so that work done again teaches nothing twice.
    source     text NOT NULL,
    made_at    timestamptz NOT NULL,
    used_at    timestamptz NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX skill_agent ON skill (tenant, agent);

-- What users said of themselves; a value that was replaced has an end and stays, a forgotten one is deleted.
CREATE TABLE user_memory (
    tenant  text NOT NULL,
    person  text NOT NULL,
    kind    text NOT NULL,
    name    text NOT NULL,
    value   text NOT NULL,
    since   timestamptz NOT NULL,
    until   timestamptz,
    -- Where it was said.
    source  text NOT NULL
);
CREATE UNIQUE INDEX user_memory_current ON user_memory (tenant, person, name) WHERE until IS NULL;
CREATE INDEX user_memory_past ON user_memory (tenant, person, name, since);
