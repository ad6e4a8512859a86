-- What was put last: the terms of one put in one row, with where they stand, until they are merged into the lists.
-- `first` and `last` are the numbers of its items.
CREATE TABLE recall_recent (
    space INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    body  BLOB NOT NULL,
    PRIMARY KEY (space, first)
);

-- The number up to which items are merged, and how many rows wait.
ALTER TABLE recall_space ADD COLUMN merged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE recall_space ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;
UPDATE recall_space SET merged = next_item;
