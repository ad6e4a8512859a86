-- When a user's memories were forgotten: what was said before that time is not stored later. Of the name, there is a hash.
CREATE TABLE user_forgotten (
    tenant    TEXT NOT NULL,
    person    TEXT NOT NULL,
    name_hash TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (tenant, person, name_hash)
);
