-- What a run used, stored at its end, for lists of runs; and the order of those lists, also of those with one status.
ALTER TABLE service_run ADD COLUMN tokens INTEGER;
ALTER TABLE service_run ADD COLUMN nano_usd INTEGER;
CREATE INDEX service_run_created ON service_run (tenant, created_at, id);
CREATE INDEX service_run_status ON service_run (tenant, status, created_at, id);

-- The words of conversations, for full-text search: each as a number that is made of the tenant and the word's stem.
CREATE TABLE conversation_word (
    word      INTEGER NOT NULL,
    thread_id BLOB NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    -- The thread's newest step when the run ended whose messages have the word.
    step      INTEGER NOT NULL,
    PRIMARY KEY (word, thread_id, step)
) WITHOUT ROWID;
CREATE INDEX conversation_word_thread ON conversation_word (thread_id);

-- A fork has the words of the steps that it shares.
CREATE TRIGGER conversation_word_forked AFTER INSERT ON thread WHEN NEW.parent_id IS NOT NULL AND NEW.root_id IS NULL
BEGIN
    INSERT INTO conversation_word (word, thread_id, step)
        SELECT word, NEW.id, step FROM conversation_word WHERE thread_id = NEW.parent_id AND step <= NEW.parent_seq;
END;
