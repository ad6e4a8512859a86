-- This transaction acts for all tenants: the rows of each are converted.
SELECT set_config('perihelion.all_tenants', 'on', true);

-- What was put last: the terms of one put in one row, with where they stand, until they are merged into the lists.
-- `first` and `last` are the numbers of its items.
CREATE TABLE recall_recent (
    space  bigint NOT NULL,
    first  bigint NOT NULL,
    last   bigint NOT NULL,
    body   bytea NOT NULL,
    tenant text NOT NULL DEFAULT current_setting('perihelion.tenant', true),
    PRIMARY KEY (space, first)
);
ALTER TABLE recall_recent ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE recall_recent ENABLE ROW LEVEL SECURITY;
ALTER TABLE recall_recent FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON recall_recent USING (
    tenant = (SELECT current_setting('perihelion.tenant', true))
    OR (SELECT current_setting('perihelion.all_tenants', true)) = 'on');

-- The number up to which items are merged, and how many rows wait.
ALTER TABLE recall_space ADD COLUMN merged bigint NOT NULL DEFAULT 0;
ALTER TABLE recall_space ADD COLUMN parts bigint NOT NULL DEFAULT 0;
UPDATE recall_space SET merged = next_item;
