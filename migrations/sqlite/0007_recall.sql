-- What lies in one scope and is of one kind: statistics never reach beyond it.
CREATE TABLE recall_space (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT NOT NULL,
    owner     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    items     INTEGER NOT NULL DEFAULT 0,
    -- Sum of the items' lengths, in quarters of a term.
    length    INTEGER NOT NULL DEFAULT 0,
    next_item INTEGER NOT NULL DEFAULT 0,
    -- Counts every change, so that what a process keeps in memory is known to be old.
    revision  INTEGER NOT NULL DEFAULT 0,
    -- Codes of the languages of its texts, separated by spaces.
    languages TEXT NOT NULL DEFAULT '',
    UNIQUE (tenant, owner, kind)
);

CREATE TABLE recall_item (
    space      INTEGER NOT NULL REFERENCES recall_space (id),
    number     INTEGER NOT NULL,
    id         TEXT NOT NULL,
    parent     TEXT,
    attributes TEXT NOT NULL,
    at         INTEGER,
    payload    TEXT NOT NULL,
    -- What an embedding model is asked, and the name of that text.
    meaning    TEXT NOT NULL,
    hash       TEXT NOT NULL,
    -- Its terms, one a line: the lists it is taken out of again.
    terms      TEXT NOT NULL,
    length     INTEGER NOT NULL,
    PRIMARY KEY (space, number),
    UNIQUE (space, id)
);
CREATE INDEX recall_item_parent ON recall_item (space, parent) WHERE parent IS NOT NULL;
CREATE INDEX recall_item_hash ON recall_item (hash);

-- Where a term stands, in blocks of packed postings (number, count, length); `first` is the number a block was begun with.
CREATE TABLE recall_posting (
    space INTEGER NOT NULL,
    term  TEXT NOT NULL,
    first INTEGER NOT NULL,
    body  BLOB NOT NULL,
    PRIMARY KEY (space, term, first)
) WITHOUT ROWID;

-- Embedding models of a tenant: the one that searches use, and one that is being built beside it.
CREATE TABLE recall_model (
    tenant    TEXT NOT NULL,
    model     TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    is_active INTEGER NOT NULL,
    revision  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, model)
);
CREATE UNIQUE INDEX recall_model_active ON recall_model (tenant) WHERE is_active;

CREATE TABLE recall_vector (
    tenant TEXT NOT NULL,
    model  TEXT NOT NULL,
    hash   TEXT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (tenant, model, hash)
) WITHOUT ROWID;
