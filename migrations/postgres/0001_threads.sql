-- One row per thread. Every commit updates it, so half of each page is left free and no index
-- covers a column that changes after creation: the update then stays on its page (HOT) and
-- touches no index, whatever the age of the thread.
CREATE TABLE thread (
    id          uuid PRIMARY KEY,
    root_id     uuid REFERENCES thread (id),
    parent_id   uuid REFERENCES thread (id),
    -- The last step shared with the parent; own steps begin after it.
    parent_seq  bigint,
    head        bigint NOT NULL DEFAULT 0,
    -- Steps up to this one were dropped; the snapshot at this step stands for them.
    base        bigint NOT NULL DEFAULT 0,
    -- Fencing token: raised by every claim, compared by every write.
    fence       bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    runs        integer NOT NULL DEFAULT 0,
    status      text NOT NULL DEFAULT 'idle',
    graph       text NOT NULL,
    title       text,
    namespace   text NOT NULL,
    tenant      text NOT NULL,
    owner       text,
    error       text,
    CHECK ((parent_id IS NULL) = (parent_seq IS NULL))
) WITH (fillfactor = 50);

CREATE INDEX thread_root ON thread (root_id) WHERE root_id IS NOT NULL;
CREATE INDEX thread_parent ON thread (parent_id) WHERE parent_id IS NOT NULL;

-- The delta log. Written once, never updated. No foreign key: the commit statement inserts from
-- the thread row it has just locked, and a second check would cost a query per step.
-- The fixed-width columns come first so that no byte is lost to alignment.
CREATE TABLE step (
    thread_id      uuid NOT NULL,
    run            uuid NOT NULL,
    seq            bigint NOT NULL,
    at             timestamptz NOT NULL DEFAULT now(),
    schema_version integer NOT NULL,
    codec          smallint NOT NULL,
    kind           text NOT NULL,
    hash           bytea NOT NULL,
    frontier       bytea NOT NULL,
    delta          bytea NOT NULL,
    PRIMARY KEY (thread_id, seq)
);

-- Long deltas arrive compressed, so the server must not spend time on trying it again (EXTERNAL),
-- and a row stays whole on its page while two of them fit (4080): moving a 2.5 KB delta out of
-- line would cost two more heap rows and two more index entries in the commit.
ALTER TABLE step ALTER COLUMN delta SET STORAGE EXTERNAL;
ALTER TABLE step ALTER COLUMN frontier SET STORAGE EXTERNAL;
ALTER TABLE step SET (toast_tuple_target = 4080);

CREATE TABLE snapshot (
    thread_id      uuid NOT NULL,
    seq            bigint NOT NULL,
    schema_version integer NOT NULL,
    codec          smallint NOT NULL,
    state          bytea NOT NULL,
    PRIMARY KEY (thread_id, seq)
);
ALTER TABLE snapshot ALTER COLUMN state SET STORAGE EXTERNAL;

-- What finished tasks of an unfinished step wrote; short-lived.
CREATE TABLE pending (
    thread_id uuid NOT NULL,
    step      bigint NOT NULL,
    task      integer NOT NULL,
    codec     smallint NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (thread_id, step, task)
);
ALTER TABLE pending ALTER COLUMN body SET STORAGE EXTERNAL;

-- The journal. A settlement changes no indexed column, so it is a HOT update as well.
CREATE TABLE effect (
    thread_id     uuid NOT NULL,
    step          bigint NOT NULL,
    started_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    task          integer NOT NULL,
    number        integer NOT NULL,
    attempt       integer NOT NULL,
    request_codec smallint NOT NULL,
    outcome_codec smallint,
    kind          text NOT NULL,
    status        text NOT NULL,
    name          text NOT NULL,
    key           bytea NOT NULL,
    request       bytea NOT NULL,
    outcome       bytea,
    PRIMARY KEY (thread_id, step, task, key),
    CHECK ((outcome IS NULL) = (outcome_codec IS NULL))
);
ALTER TABLE effect ALTER COLUMN request SET STORAGE EXTERNAL;
ALTER TABLE effect ALTER COLUMN outcome SET STORAGE EXTERNAL;

-- A person answers by the interrupt's id alone.
CREATE UNIQUE INDEX effect_interrupt ON effect (key) WHERE kind = 'interrupt';
CREATE INDEX effect_thread_interrupts ON effect (thread_id) WHERE kind = 'interrupt';

CREATE TABLE run (
    thread_id  uuid NOT NULL,
    id         uuid NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    number     integer NOT NULL,
    status     text NOT NULL,
    PRIMARY KEY (thread_id, id)
);
