-- How far the log of events reaches, and the newest step whose end is told in it: kept here, so that
-- ids go on where they ended after old rows were dropped.
ALTER TABLE thread ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE thread ADD COLUMN events_step INTEGER NOT NULL DEFAULT 0;

-- What runs told while they went on: batches, each with the ids first_id to first_id + events - 1.
CREATE TABLE event (
    thread_id BLOB NOT NULL,
    first_id  INTEGER NOT NULL,
    run       BLOB NOT NULL,
    step      INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    events    INTEGER NOT NULL,
    codec     INTEGER NOT NULL,
    body      BLOB NOT NULL,
    UNIQUE (thread_id, first_id)
);

-- Keeping a batch is one statement, and moves the thread's marks with it.
CREATE TRIGGER event_told AFTER INSERT ON event BEGIN
    UPDATE thread SET events = NEW.first_id + NEW.events - 1, events_step = NEW.step
    WHERE id = NEW.thread_id;
END;

-- What retention looks through, oldest first.
CREATE INDEX event_at ON event (at);
