-- This transaction acts for all tenants: the rows of each are converted.
SELECT set_config('perihelion.all_tenants', 'on', true);

-- Each time that a document was begun to be added, by the hash of its bytes: what is left of one that never got there, and the
-- threads that added it, can be found and deleted by its path. A description is paid once, whatever happens until the document is there.
CREATE TABLE document_attempt (
    tenant      text NOT NULL,
    owner       text NOT NULL,
    id          text NOT NULL,
    hash        text NOT NULL,
    collection  text NOT NULL,
    path        text NOT NULL,
    began_at    timestamptz NOT NULL,
    -- What a model said of it, until the document is there.
    description jsonb,
    PRIMARY KEY (tenant, owner, id, hash)
);
CREATE INDEX document_attempt_hash ON document_attempt (tenant, hash);
CREATE INDEX document_hash ON document (tenant, hash);
INSERT INTO document_attempt (tenant, owner, id, hash, collection, path, began_at)
SELECT tenant, owner, id, hash, collection, path, changed_at FROM document;
-- Where an unfinished one came from was not kept: it is found by its id, and is older than any age.
INSERT INTO document_attempt (tenant, owner, id, hash, collection, path, began_at, description)
SELECT tenant, owner, id, hash, '', '', 'epoch', description FROM document_draft
ON CONFLICT (tenant, owner, id, hash) DO UPDATE SET description = excluded.description;
DROP TABLE document_draft;

-- As all tables of documents since 0017.
ALTER TABLE document_attempt ENABLE ROW LEVEL SECURITY;
ALTER TABLE document_attempt FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON document_attempt USING (
    tenant = (SELECT current_setting('perihelion.tenant', true))
    OR (SELECT current_setting('perihelion.all_tenants', true)) = 'on');
