-- The text of a document's current version, in segments of 16,384 characters (the last one is shorter): a place is read without what
-- stands before it. Where pages begin and end is counted in characters, too.
CREATE TABLE document_segment (
    tenant TEXT NOT NULL,
    owner  TEXT NOT NULL,
    id     TEXT NOT NULL,
    -- Counts from 0: the segment begins at 16,384 times its number.
    number INTEGER NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, id, number)
);
-- By way of blocks of 64 segments: a place in a long text is found by walking to it.
INSERT INTO document_segment (tenant, owner, id, number, body)
WITH RECURSIVE counted (number) AS (
    SELECT 0
    UNION ALL
    SELECT number + 1 FROM counted
    WHERE number < 63 OR (number + 1) * 1048576 < (SELECT max(length(body)) FROM document_text)
), block AS MATERIALIZED (
    SELECT t.tenant, t.owner, t.id, c.number, substr(t.body, c.number * 1048576 + 1, 1048576) AS body
    FROM document_text t CROSS JOIN counted c WHERE c.number * 1048576 < length(t.body)
)
SELECT b.tenant, b.owner, b.id, b.number * 64 + c.number, substr(b.body, c.number * 16384 + 1, 16384)
FROM block b CROSS JOIN counted c WHERE c.number < 64 AND c.number * 16384 < length(b.body);

CREATE TABLE document_page (
    tenant TEXT NOT NULL,
    owner  TEXT NOT NULL,
    id     TEXT NOT NULL,
    number INTEGER NOT NULL,
    first  INTEGER NOT NULL,
    past   INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, id, number)
) WITHOUT ROWID;
-- Pages were counted in bytes: the byte that a segment begins with says which one to count in.
CREATE TEMP TABLE segment_byte (
    tenant TEXT, owner TEXT, id TEXT, number INTEGER, byte INTEGER, PRIMARY KEY (tenant, owner, id, number)
);
INSERT INTO segment_byte
SELECT tenant, owner, id, number,
    sum(length(CAST(body AS BLOB))) OVER (PARTITION BY tenant, owner, id ORDER BY number) - length(CAST(body AS BLOB))
FROM document_segment;
CREATE TEMP TABLE page_byte (tenant TEXT, owner TEXT, id TEXT, number INTEGER, first INTEGER, past INTEGER);
INSERT INTO page_byte
SELECT t.tenant, t.owner, t.id, p.value ->> 'number', p.value ->> 'start', p.value ->> 'end'
FROM document_text t, json_each(t.outline, '$.pages') p;
INSERT OR IGNORE INTO document_page (tenant, owner, id, number, first, past)
SELECT p.tenant, p.owner, p.id, p.number,
    (SELECT b.number * 16384 + length(CAST(substr(CAST(s.body AS BLOB), 1, p.first - b.byte) AS TEXT))
     FROM segment_byte b JOIN document_segment s USING (tenant, owner, id, number)
     WHERE b.tenant = p.tenant AND b.owner = p.owner AND b.id = p.id AND b.byte <= p.first ORDER BY b.number DESC LIMIT 1),
    (SELECT b.number * 16384 + length(CAST(substr(CAST(s.body AS BLOB), 1, p.past - b.byte) AS TEXT))
     FROM segment_byte b JOIN document_segment s USING (tenant, owner, id, number)
     WHERE b.tenant = p.tenant AND b.owner = p.owner AND b.id = p.id AND b.byte <= p.past ORDER BY b.number DESC LIMIT 1)
FROM page_byte p;
DROP TABLE page_byte;
DROP TABLE segment_byte;

-- Of the text, in UTF-8.
ALTER TABLE document ADD COLUMN text_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE document SET text_bytes = coalesce((
    SELECT length(CAST(t.body AS BLOB)) FROM document_text t
    WHERE t.tenant = document.tenant AND t.owner = document.owner AND t.id = document.id), 0);

DROP TABLE document_text;
