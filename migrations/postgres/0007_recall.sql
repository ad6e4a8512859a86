-- What lies in one scope and is of one kind: statistics never reach beyond it.
CREATE TABLE recall_space (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant    text NOT NULL,
    owner     text NOT NULL,
    kind      text NOT NULL,
    items     bigint NOT NULL DEFAULT 0,
    -- Sum of the items' lengths, in quarters of a term.
    length    bigint NOT NULL DEFAULT 0,
    next_item bigint NOT NULL DEFAULT 0,
    -- Counts every change, so that what a process keeps in memory is known to be old.
    revision  bigint NOT NULL DEFAULT 0,
    -- Codes of the languages of its texts, separated by spaces.
    languages text NOT NULL DEFAULT '',
    UNIQUE (tenant, owner, kind)
);

CREATE TABLE recall_item (
    space      bigint NOT NULL REFERENCES recall_space (id),
    number     bigint NOT NULL,
    id         text NOT NULL,
    parent     text,
    attributes jsonb NOT NULL,
    at         timestamptz,
    payload    jsonb NOT NULL,
    -- What an embedding model is asked, and the name of that text.
    meaning    text NOT NULL,
    hash       text NOT NULL,
    -- Its terms, one a line: the lists it is taken out of again.
    terms      text NOT NULL,
    length     bigint NOT NULL,
    PRIMARY KEY (space, number),
    UNIQUE (space, id)
);
CREATE INDEX recall_item_parent ON recall_item (space, parent) WHERE parent IS NOT NULL;
CREATE INDEX recall_item_hash ON recall_item (hash);

-- Where a term stands, in blocks of packed postings (number, count, length); `first` is the number a block was begun with.
CREATE TABLE recall_posting (
    space bigint NOT NULL,
    -- By code points, as in SQLite.
    term  text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    body  bytea NOT NULL,
    PRIMARY KEY (space, term, first)
);
ALTER TABLE recall_posting ALTER COLUMN body SET STORAGE EXTERNAL;

-- Embedding models of a tenant: the one that searches use, and one that is being built beside it.
CREATE TABLE recall_model (
    tenant    text NOT NULL,
    model     text NOT NULL,
    dimension bigint NOT NULL,
    is_active boolean NOT NULL,
    revision  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, model)
);
CREATE UNIQUE INDEX recall_model_active ON recall_model (tenant) WHERE is_active;

CREATE TABLE recall_vector (
    tenant text NOT NULL,
    model  text NOT NULL,
    hash   text NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (tenant, model, hash)
);
ALTER TABLE recall_vector ALTER COLUMN body SET STORAGE EXTERNAL;
