-- Names of the people who wrote a document, as its properties say; those that are kept already have none until they change.
ALTER TABLE document ADD COLUMN authors jsonb NOT NULL DEFAULT '[]';
