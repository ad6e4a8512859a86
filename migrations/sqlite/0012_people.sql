-- Who may ask: users, their sessions, keys; and what was done by whom. Secrets are kept as hashes alone.
CREATE TABLE person (
    id          BLOB PRIMARY KEY,
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    password    TEXT NOT NULL,
    scopes      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER,
    UNIQUE (tenant, name)
);

CREATE TABLE session (
    token      BLOB PRIMARY KEY,
    tenant     TEXT NOT NULL,
    person     BLOB NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    csrf       BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX session_person ON session (person);

CREATE TABLE api_key (
    id         BLOB PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    -- The user whom it acts for, if any.
    person     TEXT,
    scopes     TEXT NOT NULL,
    token      BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);
CREATE UNIQUE INDEX api_key_name ON api_key (tenant, name) WHERE revoked_at IS NULL;

CREATE TABLE audit (
    id        BLOB PRIMARY KEY,
    at        INTEGER NOT NULL,
    tenant    TEXT NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    thread_id BLOB,
    details   TEXT NOT NULL
);
CREATE INDEX audit_tenant ON audit (tenant, at);
CREATE INDEX audit_thread ON audit (thread_id, at) WHERE thread_id IS NOT NULL;
