-- Why a run ended, in a word of its graph's.
ALTER TABLE run ADD COLUMN finish_reason TEXT;

-- What rows say of themselves, so that damage is found where they are read; absent in rows of earlier versions.
ALTER TABLE effect ADD COLUMN request_sum BLOB;
ALTER TABLE effect ADD COLUMN outcome_sum BLOB;
ALTER TABLE pending ADD COLUMN checksum BLOB;
ALTER TABLE snapshot ADD COLUMN checksum BLOB;

-- How many effects each task has recorded, so that a lost row is missed.
CREATE TABLE effect_count (
    thread_id BLOB NOT NULL,
    step      INTEGER NOT NULL,
    task      INTEGER NOT NULL,
    effects   INTEGER NOT NULL,
    PRIMARY KEY (thread_id, step, task)
) WITHOUT ROWID;

CREATE TRIGGER effect_counted AFTER INSERT ON effect BEGIN
    INSERT INTO effect_count (thread_id, step, task, effects)
        VALUES (NEW.thread_id, NEW.step, NEW.task, 1)
        ON CONFLICT (thread_id, step, task) DO UPDATE SET effects = effects + 1;
END;
