-- This transaction acts for all tenants: the rows of each are converted.
SELECT set_config('perihelion.all_tenants', 'on', true);

-- The text of a document's current version, in segments of 16,384 characters (the last one is shorter): a place is read without what
-- stands before it. Where pages begin and end is counted in characters, too.
CREATE TABLE document_segment (
    tenant text NOT NULL,
    owner  text NOT NULL,
    id     text NOT NULL,
    -- Counts from 0: the segment begins at 16,384 times its number.
    number bigint NOT NULL,
    body   text NOT NULL,
    PRIMARY KEY (tenant, owner, id, number)
);
-- By way of blocks of 64 segments: a place in a long text is found by walking to it.
INSERT INTO document_segment (tenant, owner, id, number, body)
SELECT b.tenant, b.owner, b.id, b.number * 64 + n, substr(b.body, n * 16384 + 1, 16384)
FROM (
    SELECT t.tenant, t.owner, t.id, n AS number, substr(t.body, n * 1048576 + 1, 1048576) AS body
    FROM document_text t CROSS JOIN LATERAL generate_series(0, (length(t.body) - 1) / 1048576) n
    WHERE t.body <> '' OFFSET 0
) b CROSS JOIN LATERAL generate_series(0, (length(b.body) - 1) / 16384) n;

CREATE TABLE document_page (
    tenant text NOT NULL,
    owner  text NOT NULL,
    id     text NOT NULL,
    number bigint NOT NULL,
    first  bigint NOT NULL,
    past   bigint NOT NULL,
    PRIMARY KEY (tenant, owner, id, number)
);
-- Pages were counted in bytes: the byte that a segment begins with says which one to count in.
CREATE TEMP TABLE segment_byte ON COMMIT DROP AS
SELECT tenant, owner, id, number,
    sum(octet_length(body)) OVER (PARTITION BY tenant, owner, id ORDER BY number) - octet_length(body) AS byte
FROM document_segment;
CREATE UNIQUE INDEX segment_byte_of ON segment_byte (tenant, owner, id, number);
CREATE TEMP TABLE page_byte ON COMMIT DROP AS
SELECT t.tenant, t.owner, t.id, p.number, p.start AS first, p."end" AS past
FROM document_text t
CROSS JOIN LATERAL jsonb_to_recordset(t.outline -> 'pages') AS p (number bigint, start bigint, "end" bigint);
INSERT INTO document_page (tenant, owner, id, number, first, past)
SELECT p.tenant, p.owner, p.id, p.number,
    (SELECT b.number * 16384
        + length(convert_from(substring(convert_to(s.body, 'UTF8') FROM 1 FOR (p.first - b.byte)::integer), 'UTF8'))
     FROM segment_byte b JOIN document_segment s USING (tenant, owner, id, number)
     WHERE b.tenant = p.tenant AND b.owner = p.owner AND b.id = p.id AND b.byte <= p.first ORDER BY b.number DESC LIMIT 1),
    (SELECT b.number * 16384
        + length(convert_from(substring(convert_to(s.body, 'UTF8') FROM 1 FOR (p.past - b.byte)::integer), 'UTF8'))
     FROM segment_byte b JOIN document_segment s USING (tenant, owner, id, number)
     WHERE b.tenant = p.tenant AND b.owner = p.owner AND b.id = p.id AND b.byte <= p.past ORDER BY b.number DESC LIMIT 1)
FROM page_byte p
ON CONFLICT DO NOTHING;

-- Of the text, in UTF-8.
ALTER TABLE document ADD COLUMN text_bytes bigint NOT NULL DEFAULT 0;
UPDATE document d SET text_bytes = octet_length(t.body) FROM document_text t
WHERE t.tenant = d.tenant AND t.owner = d.owner AND t.id = d.id;

DROP TABLE document_text;

-- As all tables of documents since 0017.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['document_segment', 'document_page'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY of_tenant ON %I USING (
                tenant = (SELECT current_setting(''perihelion.tenant'', true))
                OR (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'')',
            name);
    END LOOP;
END $$;
