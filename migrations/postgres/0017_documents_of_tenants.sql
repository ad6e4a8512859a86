-- What each tenant keeps of documents: held to its quotas, changed with the documents in one transaction.
CREATE TABLE document_usage (
    tenant     text PRIMARY KEY NOT NULL,
    documents  bigint NOT NULL,
    -- Of the texts, in UTF-8.
    text_bytes bigint NOT NULL,
    chunks     bigint NOT NULL
);
INSERT INTO document_usage
SELECT d.tenant, count(*), coalesce(sum(octet_length(t.body)), 0)::bigint, coalesce(sum(d.chunks), 0)::bigint
FROM document d LEFT JOIN document_text t ON t.tenant = d.tenant AND t.owner = d.owner AND t.id = d.id
GROUP BY d.tenant;

-- Items and postings say whose they are themselves; the default is the tenant that the transaction acts for.
ALTER TABLE recall_item ADD COLUMN tenant text DEFAULT current_setting('perihelion.tenant', true);
UPDATE recall_item SET tenant = s.tenant FROM recall_space s WHERE s.id = space;
ALTER TABLE recall_item ALTER COLUMN tenant SET NOT NULL;
ALTER TABLE recall_posting ADD COLUMN tenant text DEFAULT current_setting('perihelion.tenant', true);
UPDATE recall_posting SET tenant = s.tenant FROM recall_space s WHERE s.id = space;
ALTER TABLE recall_posting ALTER COLUMN tenant SET NOT NULL;

-- A transaction sees and writes the rows of the tenant that it acts for, or all when it acts for all; others see none. The
-- sub-queries make the settings be read once a statement and not once a row. `crates/database/src/acting.rs` sets them.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'document', 'document_text', 'document_parent', 'document_draft', 'document_usage',
        'recall_space', 'recall_item', 'recall_posting', 'recall_model', 'recall_vector'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY of_tenant ON %I USING (
                tenant = (SELECT current_setting(''perihelion.tenant'', true))
                OR (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'')',
            name);
    END LOOP;
END $$;
