-- Long texts that states name and do not hold: of the thread at the top, whichever of its subgraphs wrote them.
CREATE TABLE blob (
    thread_id BLOB NOT NULL,
    -- BLAKE3 of the text, or what stands for it where texts are encrypted.
    hash      BLOB NOT NULL,
    -- The first step of the thread that names it: forks from there on share it.
    step      INTEGER NOT NULL,
    codec     INTEGER NOT NULL,
    body      BLOB NOT NULL,
    UNIQUE (thread_id, hash)
);

-- The names of the texts that the snapshot's state names.
ALTER TABLE snapshot ADD COLUMN blobs_codec INTEGER;
ALTER TABLE snapshot ADD COLUMN blobs BLOB;
