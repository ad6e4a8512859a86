-- Items that are not in the lists yet, in a few rows for each term: rows with all terms of an addition (bucket 256), and rows with the
-- terms of one bucket from many additions (0 to 60). `first` and `last` are the numbers of the items. The table has a new name, so
-- that programs that do not know of buckets get an error.
ALTER TABLE recall_recent RENAME TO recall_part;
ALTER TABLE recall_part ADD COLUMN bucket bigint NOT NULL DEFAULT 256;
ALTER TABLE recall_part ALTER COLUMN bucket DROP DEFAULT;
ALTER TABLE recall_part DROP CONSTRAINT recall_recent_pkey;
ALTER TABLE recall_part ADD PRIMARY KEY (space, bucket, first);
