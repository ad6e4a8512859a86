-- Teams that were designed at run time, in versions; the newest one is in force.
CREATE TABLE workflows (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    design     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, version)
);
