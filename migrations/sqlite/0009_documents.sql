-- Documents of an owner; what is searched of them are items of the kind `document` in the index.
CREATE TABLE document (
    tenant      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    id          TEXT NOT NULL,
    collection  TEXT NOT NULL,
    -- Where it came from; one document per path and collection.
    path        TEXT NOT NULL,
    title       TEXT NOT NULL,
    format      TEXT NOT NULL,
    -- Of the file's bytes, so that the same ones again cost nothing.
    hash        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    -- Lengths of the file in bytes, and of the text in characters.
    bytes       INTEGER NOT NULL,
    characters  INTEGER NOT NULL,
    chunks      INTEGER NOT NULL,
    -- Summary, type and topics, where a model described it.
    description TEXT,
    warnings    TEXT NOT NULL,
    added_at    INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, id),
    UNIQUE (tenant, owner, collection, path)
) WITHOUT ROWID;

-- The canonical text of a document's current version, and where pages, sections and tables lie in it.
CREATE TABLE document_text (
    tenant  TEXT NOT NULL,
    owner   TEXT NOT NULL,
    id      TEXT NOT NULL,
    body    TEXT NOT NULL,
    outline TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, id)
);

-- What a model reads around a hit: ranges of the text, in characters.
CREATE TABLE document_parent (
    tenant      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    id          TEXT NOT NULL,
    number      INTEGER NOT NULL,
    first       INTEGER NOT NULL,
    past        INTEGER NOT NULL,
    page        INTEGER,
    section     TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, id, number)
) WITHOUT ROWID;

-- What a model said of a document that is being added: paid once, whatever happens until the document is there.
CREATE TABLE document_draft (
    tenant      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    id          TEXT NOT NULL,
    hash        TEXT NOT NULL,
    description TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, id)
) WITHOUT ROWID;
