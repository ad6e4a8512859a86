-- Long texts that states name and do not hold: of the thread at the top, whichever of its subgraphs wrote them.
CREATE TABLE blob (
    thread_id uuid NOT NULL,
    -- The first step of the thread that names it: forks from there on share it.
    step      bigint NOT NULL,
    codec     smallint NOT NULL,
    -- BLAKE3 of the text, or what stands for it where texts are encrypted.
    hash      bytea NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (thread_id, hash)
);
-- Bodies arrive compressed.
ALTER TABLE blob ALTER COLUMN body SET STORAGE EXTERNAL;

-- The names of the texts that the snapshot's state names.
ALTER TABLE snapshot ADD COLUMN blobs_codec smallint;
ALTER TABLE snapshot ADD COLUMN blobs bytea;

-- Texts are seen where their thread is, as its other rows are since 0022.
ALTER TABLE blob ENABLE ROW LEVEL SECURITY;
ALTER TABLE blob FORCE ROW LEVEL SECURITY;
CREATE POLICY of_thread ON blob USING (
    CASE WHEN (SELECT current_setting('perihelion.all_tenants', true)) = 'on' THEN true
    ELSE EXISTS (SELECT FROM thread t WHERE t.id = thread_id) END);
