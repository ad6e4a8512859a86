-- Times are whole microseconds since 1970, ids are 16 bytes.

CREATE TABLE thread (
    id          BLOB PRIMARY KEY NOT NULL,
    root_id     BLOB REFERENCES thread (id),
    parent_id   BLOB REFERENCES thread (id),
    -- The last step shared with the parent; own steps begin after it.
    parent_seq  INTEGER,
    head        INTEGER NOT NULL DEFAULT 0,
    -- Steps up to this one were dropped; the snapshot at this step stands for them.
    base        INTEGER NOT NULL DEFAULT 0,
    -- Fencing token: raised by every claim, compared by every write.
    fence       INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    runs        INTEGER NOT NULL DEFAULT 0,
    status      TEXT NOT NULL DEFAULT 'idle',
    graph       TEXT NOT NULL,
    title       TEXT,
    namespace   TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    owner       TEXT,
    error       TEXT,
    CHECK ((parent_id IS NULL) = (parent_seq IS NULL))
) WITHOUT ROWID;

-- No index covers a column that a commit changes.
CREATE INDEX thread_root ON thread (root_id) WHERE root_id IS NOT NULL;
CREATE INDEX thread_parent ON thread (parent_id) WHERE parent_id IS NOT NULL;

-- The delta log. Written once, never updated. It keeps its rowid: rows of more than a quarter of a
-- page would leave a table without one for overflow pages of their own.
CREATE TABLE step (
    thread_id      BLOB NOT NULL,
    seq            INTEGER NOT NULL,
    run            BLOB NOT NULL,
    at             INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    codec          INTEGER NOT NULL,
    kind           TEXT NOT NULL,
    hash           BLOB NOT NULL,
    frontier       BLOB NOT NULL,
    delta          BLOB NOT NULL,
    UNIQUE (thread_id, seq)
);

CREATE TABLE snapshot (
    thread_id      BLOB NOT NULL,
    seq            INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    codec          INTEGER NOT NULL,
    state          BLOB NOT NULL,
    UNIQUE (thread_id, seq)
);

-- What finished tasks of an unfinished step wrote; short-lived.
CREATE TABLE pending (
    thread_id BLOB NOT NULL,
    step      INTEGER NOT NULL,
    task      INTEGER NOT NULL,
    codec     INTEGER NOT NULL,
    body      BLOB NOT NULL,
    UNIQUE (thread_id, step, task)
);

CREATE TABLE effect (
    thread_id     BLOB NOT NULL,
    step          INTEGER NOT NULL,
    task          INTEGER NOT NULL,
    key           BLOB NOT NULL,
    number        INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    kind          TEXT NOT NULL,
    status        TEXT NOT NULL,
    name          TEXT NOT NULL,
    request_codec INTEGER NOT NULL,
    outcome_codec INTEGER,
    request       BLOB NOT NULL,
    outcome       BLOB,
    UNIQUE (thread_id, step, task, key),
    CHECK ((outcome IS NULL) = (outcome_codec IS NULL))
);

-- A person answers by the interrupt's id alone.
CREATE UNIQUE INDEX effect_interrupt ON effect (key) WHERE kind = 'interrupt';
CREATE INDEX effect_thread_interrupts ON effect (thread_id) WHERE kind = 'interrupt';

CREATE TABLE run (
    thread_id  BLOB NOT NULL,
    id         BLOB NOT NULL,
    number     INTEGER NOT NULL,
    status     TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;

-- A commit is one INSERT into this view: one statement, so one trip to the connection's thread and
-- one transaction, in which the fencing token and the head are checked and moved.
CREATE VIEW step_commit AS
    SELECT step.*, 0 AS fence, '' AS status, 0 AS clears_pending FROM step;

CREATE TRIGGER step_commit_insert INSTEAD OF INSERT ON step_commit
BEGIN
    UPDATE thread SET head = NEW.seq, status = NEW.status, updated_at = NEW.at
        WHERE id = NEW.thread_id AND head = NEW.seq - 1 AND fence = NEW.fence;
    SELECT RAISE(ABORT, 'stale') WHERE changes() = 0;
    INSERT INTO step (thread_id, seq, run, at, schema_version, codec, kind, hash, frontier, delta)
        VALUES (NEW.thread_id, NEW.seq, NEW.run, NEW.at, NEW.schema_version, NEW.codec, NEW.kind,
            NEW.hash, NEW.frontier, NEW.delta);
    DELETE FROM pending
        WHERE NEW.clears_pending AND thread_id = NEW.thread_id AND step <= NEW.seq;
END;
