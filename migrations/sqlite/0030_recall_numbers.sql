-- Programs from before 0028 know only the lists and would write past what waits beside them: they ask for a column that is not
-- there any more, and get an error instead.
ALTER TABLE recall_space RENAME COLUMN next_item TO next_number;

-- What they put into the lists between the two migrations does not wait.
UPDATE recall_space SET merged = next_number WHERE parts = 0;
