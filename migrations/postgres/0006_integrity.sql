-- Why a run ended, in a word of its graph's.
ALTER TABLE run ADD COLUMN finish_reason text;

-- What rows say of themselves, so that damage is found where they are read; absent in rows of earlier versions.
ALTER TABLE effect ADD COLUMN request_sum bytea;
ALTER TABLE effect ADD COLUMN outcome_sum bytea;
ALTER TABLE pending ADD COLUMN checksum bytea;
ALTER TABLE snapshot ADD COLUMN checksum bytea;

-- How many effects each task has recorded, so that a lost row is missed.
CREATE TABLE effect_count (
    thread_id uuid NOT NULL,
    step      bigint NOT NULL,
    task      integer NOT NULL,
    effects   bigint NOT NULL,
    PRIMARY KEY (thread_id, step, task)
);
