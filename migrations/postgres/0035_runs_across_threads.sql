-- What a run used, stored at its end, for lists of runs; and the order of those lists, also of those with one status.
ALTER TABLE service_run ADD COLUMN tokens bigint;
ALTER TABLE service_run ADD COLUMN nano_usd bigint;
CREATE INDEX service_run_created ON service_run (tenant, created_at, id);
CREATE INDEX service_run_status ON service_run (tenant, status, created_at, id);

-- The words of conversations, for full-text search: each as a number that is made of the tenant and the word's stem. Numbers are
-- compared by an index before a row's policy is asked; tsvectors are not, because their operators could leak what they compare.
CREATE TABLE conversation_word (
    word      bigint NOT NULL,
    thread_id uuid NOT NULL REFERENCES thread (id) ON DELETE CASCADE,
    -- The thread's newest step when the run ended whose messages have the word.
    step      bigint NOT NULL,
    tenant    text NOT NULL DEFAULT current_setting('perihelion.tenant', true),
    PRIMARY KEY (word, thread_id, step)
);
CREATE INDEX conversation_word_thread ON conversation_word (thread_id);

-- A fork has the words of the steps that it shares.
CREATE FUNCTION copy_conversation_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO conversation_word (word, thread_id, step, tenant)
        SELECT word, NEW.id, step, NEW.tenant FROM conversation_word
        WHERE thread_id = NEW.parent_id AND step <= NEW.parent_seq;
    RETURN NULL;
END
$$;
CREATE TRIGGER conversation_word_forked AFTER INSERT ON thread FOR EACH ROW
    WHEN (NEW.parent_id IS NOT NULL AND NEW.root_id IS NULL) EXECUTE FUNCTION copy_conversation_words();

ALTER TABLE conversation_word ENABLE ROW LEVEL SECURITY;
ALTER TABLE conversation_word FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON conversation_word USING (
    CASE WHEN (SELECT current_setting('perihelion.all_tenants', true)) = 'on' THEN true
    ELSE tenant = (SELECT current_setting('perihelion.tenant', true)) END);
