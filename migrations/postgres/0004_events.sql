-- How far the log of events reaches, and the newest step whose end is told in it: kept here, so that
-- ids go on where they ended after old rows were dropped. No index covers them (HOT, as for a commit).
ALTER TABLE thread ADD COLUMN events bigint NOT NULL DEFAULT 0;
ALTER TABLE thread ADD COLUMN events_step bigint NOT NULL DEFAULT 0;

-- What runs told while they went on: batches, each with the ids first_id to first_id + events - 1.
CREATE TABLE event (
    thread_id uuid NOT NULL,
    run       uuid NOT NULL,
    first_id  bigint NOT NULL,
    step      bigint NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    events    integer NOT NULL,
    codec     smallint NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (thread_id, first_id)
);
ALTER TABLE event ALTER COLUMN body SET STORAGE EXTERNAL;

-- What retention looks through, oldest first.
CREATE INDEX event_at ON event (at);
