-- Teams that were designed at run time, in versions; the newest one is in force.
CREATE TABLE workflows (
    tenant     text NOT NULL,
    name       text NOT NULL,
    version    bigint NOT NULL,
    design     jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name, version)
);
