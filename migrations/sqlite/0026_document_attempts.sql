-- Each time that a document was begun to be added, by the hash of its bytes: what is left of one that never got there, and the
-- threads that added it, can be found and deleted by its path. A description is paid once, whatever happens until the document is there.
CREATE TABLE document_attempt (
    tenant      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    id          TEXT NOT NULL,
    hash        TEXT NOT NULL,
    collection  TEXT NOT NULL,
    path        TEXT NOT NULL,
    began_at    INTEGER NOT NULL,
    -- What a model said of it, until the document is there.
    description TEXT,
    PRIMARY KEY (tenant, owner, id, hash)
) WITHOUT ROWID;
CREATE INDEX document_attempt_hash ON document_attempt (tenant, hash);
CREATE INDEX document_hash ON document (tenant, hash);
INSERT INTO document_attempt (tenant, owner, id, hash, collection, path, began_at)
SELECT tenant, owner, id, hash, collection, path, changed_at FROM document;
-- Where an unfinished one came from was not kept: it is found by its id, and is older than any age.
INSERT INTO document_attempt (tenant, owner, id, hash, collection, path, began_at, description)
SELECT tenant, owner, id, hash, '', '', 0, description FROM document_draft WHERE true
ON CONFLICT (tenant, owner, id, hash) DO UPDATE SET description = excluded.description;
DROP TABLE document_draft;
