-- The file to which a thread at rest was moved, with the threads of its subgraphs; empty while its rows are in the database.
ALTER TABLE thread ADD COLUMN archived TEXT;
-- When it was last brought back.
ALTER TABLE thread ADD COLUMN returned_at INTEGER;
CREATE INDEX thread_to_archive ON thread (rested_at, id)
    WHERE root_id IS NULL AND archived IS NULL AND status IN ('idle', 'failed', 'parked');

-- Files that no thread names: being written, or to be removed.
CREATE TABLE archive_file (
    name       TEXT PRIMARY KEY NOT NULL,
    thread_id  BLOB NOT NULL,
    tenant     TEXT NOT NULL,
    since      INTEGER NOT NULL,
    -- It is removed, and no thread may name it.
    is_over    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX archive_file_thread ON archive_file (thread_id);

-- What lists of runs read from the first step of a run, while its thread is archived.
ALTER TABLE service_run ADD COLUMN first_number INTEGER;
ALTER TABLE service_run ADD COLUMN began_at INTEGER;
CREATE TRIGGER thread_archived AFTER UPDATE OF archived ON thread WHEN NEW.archived IS NOT NULL AND NEW.root_id IS NULL
BEGIN
    UPDATE service_run SET (first_number, began_at) = (
        SELECT e.number, s.at FROM step s LEFT JOIN run e ON e.thread_id = s.thread_id AND e.id = s.run
        WHERE s.thread_id = service_run.thread_id AND s.seq = service_run.base_step + 1)
    WHERE thread_id = NEW.id AND base_step IS NOT NULL;
END;
