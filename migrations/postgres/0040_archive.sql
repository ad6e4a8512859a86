-- The file to which a thread at rest was moved, with the threads of its subgraphs; empty while its rows are in the database.
ALTER TABLE thread ADD COLUMN archived text;
-- When it was last brought back.
ALTER TABLE thread ADD COLUMN returned_at timestamptz;
CREATE INDEX thread_to_archive ON thread (rested_at, id)
    WHERE root_id IS NULL AND archived IS NULL AND status IN ('idle', 'failed', 'parked');

-- Files that no thread names: being written, or to be removed.
CREATE TABLE archive_file (
    name       text PRIMARY KEY,
    thread_id  uuid NOT NULL,
    tenant     text NOT NULL,
    since      timestamptz NOT NULL DEFAULT now(),
    -- It is removed, and no thread may name it.
    is_over    boolean NOT NULL DEFAULT false
);
CREATE INDEX archive_file_thread ON archive_file (thread_id);
ALTER TABLE archive_file ENABLE ROW LEVEL SECURITY;
ALTER TABLE archive_file FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON archive_file USING (
    CASE WHEN (SELECT current_setting('perihelion.all_tenants', true)) = 'on' THEN true
    ELSE tenant = (SELECT current_setting('perihelion.tenant', true)) END);

-- What lists of runs read from the first step of a run, while its thread is archived.
ALTER TABLE service_run ADD COLUMN first_number integer;
ALTER TABLE service_run ADD COLUMN began_at timestamptz;
CREATE FUNCTION keep_first_numbers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE service_run r SET first_number = e.number, began_at = s.at
    FROM step s LEFT JOIN run e ON e.thread_id = s.thread_id AND e.id = s.run
    WHERE r.thread_id = NEW.id AND s.thread_id = NEW.id AND s.seq = r.base_step + 1;
    RETURN NULL;
END
$$;
CREATE TRIGGER thread_archived AFTER UPDATE OF archived ON thread FOR EACH ROW
    WHEN (NEW.archived IS NOT NULL AND NEW.root_id IS NULL) EXECUTE FUNCTION keep_first_numbers();
