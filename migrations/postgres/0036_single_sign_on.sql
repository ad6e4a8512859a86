-- Users of an identity provider, whom only its subject names: the issuer and its own ID of the user. They have no password.
ALTER TABLE person ADD COLUMN subject text;
CREATE UNIQUE INDEX person_subject ON person (tenant, subject) WHERE subject IS NOT NULL;
