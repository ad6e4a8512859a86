-- Items that are not in the lists yet, in a few rows for each term: rows with all terms of an addition (bucket 256), and rows with the
-- terms of one bucket from many additions (0 to 60). `first` and `last` are the numbers of the items. The table has a new name, so
-- that programs that do not know of buckets get an error.
CREATE TABLE recall_part (
    space  INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (space, bucket, first)
);
INSERT INTO recall_part (space, bucket, first, last, body) SELECT space, 256, first, last, body FROM recall_recent;
DROP TABLE recall_recent;
