-- This transaction acts for all tenants: the rows of each are converted.
SELECT set_config('perihelion.all_tenants', 'on', true);

-- The revision of the space with which an item was put or changed, and the numbers of items that are gone: what a process keeps in
-- memory is brought up to date by them. The last 1,000 revisions are remembered.
ALTER TABLE recall_item ADD COLUMN changed bigint NOT NULL DEFAULT 0;
CREATE INDEX recall_item_changed ON recall_item (space, changed);
CREATE TABLE recall_gone (
    space    bigint NOT NULL,
    revision bigint NOT NULL,
    number   bigint NOT NULL,
    tenant   text NOT NULL DEFAULT current_setting('perihelion.tenant', true),
    PRIMARY KEY (space, revision, number)
);
-- How many of the revisions are noted so: a program that does not know of it changes the revision alone.
ALTER TABLE recall_space ADD COLUMN noted bigint NOT NULL DEFAULT 0;

-- Texts that somebody is about to have as items: their vectors are kept meanwhile.
CREATE TABLE recall_claim (
    tenant text NOT NULL,
    holder text NOT NULL,
    hash   text NOT NULL,
    PRIMARY KEY (tenant, holder, hash)
);
CREATE INDEX recall_claim_hash ON recall_claim (tenant, hash);
INSERT INTO recall_claim (tenant, holder, hash)
SELECT s.tenant, i.parent, i.hash FROM recall_item i JOIN recall_space s ON s.id = i.space
WHERE s.kind = 'document.staged' AND i.parent IS NOT NULL
ON CONFLICT DO NOTHING;
DELETE FROM recall_posting WHERE space IN (SELECT id FROM recall_space WHERE kind = 'document.staged');
DELETE FROM recall_item WHERE space IN (SELECT id FROM recall_space WHERE kind = 'document.staged');
DELETE FROM recall_space WHERE kind = 'document.staged';

-- As all tables of the index since 0017.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['recall_gone', 'recall_claim'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY of_tenant ON %I USING (
                tenant = (SELECT current_setting(''perihelion.tenant'', true))
                OR (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'')',
            name);
    END LOOP;
END $$;
