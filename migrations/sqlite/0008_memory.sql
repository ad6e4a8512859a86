-- What agents learned: a task, and the calls that solved it, with values as parameters.
CREATE TABLE skill (
    id         TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    agent      TEXT NOT NULL,
    server     TEXT NOT NULL,
    task       TEXT NOT NULL,
    -- The calls, and the tools' definitions by name as hashes.
    steps      TEXT NOT NULL,
    tools      TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    successes  INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    is_stale   INTEGER NOT NULL DEFAULT 0,
    -- The work that it was learned from last, so that work done again teaches nothing twice.
    source     TEXT NOT NULL,
    made_at    INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX skill_agent ON skill (tenant, agent);

-- What users said of themselves; a value that was replaced has an end and stays, a forgotten one is deleted.
CREATE TABLE user_memory (
    tenant  TEXT NOT NULL,
    person  TEXT NOT NULL,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER,
    -- Where it was said.
    source  TEXT NOT NULL
);
CREATE UNIQUE INDEX user_memory_current ON user_memory (tenant, person, name) WHERE until IS NULL;
CREATE INDEX user_memory_past ON user_memory (tenant, person, name, since);
