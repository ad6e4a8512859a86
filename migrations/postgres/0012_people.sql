-- Who may ask: users, their sessions, keys; and what was done by whom. Secrets are kept as hashes alone.
CREATE TABLE person (
    id          uuid PRIMARY KEY,
    tenant      text NOT NULL,
    name        text NOT NULL,
    password    text NOT NULL,
    scopes      text NOT NULL,
    created_at  timestamptz NOT NULL,
    disabled_at timestamptz,
    UNIQUE (tenant, name)
);

CREATE TABLE session (
    token      bytea PRIMARY KEY,
    tenant     text NOT NULL,
    person     uuid NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    csrf       bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX session_person ON session (person);

CREATE TABLE api_key (
    id         uuid PRIMARY KEY,
    tenant     text NOT NULL,
    name       text NOT NULL,
    -- The user whom it acts for, if any.
    person     text,
    scopes     text NOT NULL,
    token      bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE UNIQUE INDEX api_key_name ON api_key (tenant, name) WHERE revoked_at IS NULL;

CREATE TABLE audit (
    id        uuid PRIMARY KEY,
    at        timestamptz NOT NULL,
    tenant    text NOT NULL,
    actor     text NOT NULL,
    action    text NOT NULL,
    subject   text NOT NULL,
    thread_id uuid,
    details   jsonb NOT NULL
);
CREATE INDEX audit_tenant ON audit (tenant, at);
CREATE INDEX audit_thread ON audit (thread_id, at) WHERE thread_id IS NOT NULL;
