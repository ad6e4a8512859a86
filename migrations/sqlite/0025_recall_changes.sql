-- The revision of the space with which an item was put or changed, and the numbers of items that are gone: what a process keeps in
-- memory is brought up to date by them. The last 1,000 revisions are remembered.
ALTER TABLE recall_item ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX recall_item_changed ON recall_item (space, changed);
CREATE TABLE recall_gone (
    space    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    PRIMARY KEY (space, revision, number)
) WITHOUT ROWID;
-- How many of the revisions are noted so: a program that does not know of it changes the revision alone.
ALTER TABLE recall_space ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;

-- Texts that somebody is about to have as items: their vectors are kept meanwhile.
CREATE TABLE recall_claim (
    tenant TEXT NOT NULL,
    holder TEXT NOT NULL,
    hash   TEXT NOT NULL,
    PRIMARY KEY (tenant, holder, hash)
) WITHOUT ROWID;
CREATE INDEX recall_claim_hash ON recall_claim (tenant, hash);
INSERT OR IGNORE INTO recall_claim (tenant, holder, hash)
SELECT s.tenant, i.parent, i.hash FROM recall_item i JOIN recall_space s ON s.id = i.space
WHERE s.kind = 'document.staged' AND i.parent IS NOT NULL;
DELETE FROM recall_posting WHERE space IN (SELECT id FROM recall_space WHERE kind = 'document.staged');
DELETE FROM recall_item WHERE space IN (SELECT id FROM recall_space WHERE kind = 'document.staged');
DELETE FROM recall_space WHERE kind = 'document.staged';
