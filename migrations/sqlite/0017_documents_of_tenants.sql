-- What each tenant keeps of documents: held to its quotas, changed with the documents in one transaction.
CREATE TABLE document_usage (
    tenant     TEXT PRIMARY KEY NOT NULL,
    documents  INTEGER NOT NULL,
    -- Of the texts, in UTF-8.
    text_bytes INTEGER NOT NULL,
    chunks     INTEGER NOT NULL
);
INSERT INTO document_usage
SELECT d.tenant, count(*), coalesce(sum(length(CAST(t.body AS BLOB))), 0), coalesce(sum(d.chunks), 0)
FROM document d LEFT JOIN document_text t ON t.tenant = d.tenant AND t.owner = d.owner AND t.id = d.id
GROUP BY d.tenant;
