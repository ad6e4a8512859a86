-- Documents of an owner; what is searched of them are items of the kind `document` in the index.
CREATE TABLE document (
    tenant      text NOT NULL,
    owner       text NOT NULL,
    id          text NOT NULL,
    collection  text NOT NULL,
    -- Where it came from; one document per path and collection.
    path        text NOT NULL,
    title       text NOT NULL,
    format      text NOT NULL,
    -- Of the file's bytes, so that the same ones again cost nothing.
    hash        text NOT NULL,
    version     bigint NOT NULL,
    -- Lengths of the file in bytes, and of the text in characters.
    bytes       bigint NOT NULL,
    characters  bigint NOT NULL,
    chunks      bigint NOT NULL,
    -- Summary, type and topics, where a model described it.
    description jsonb,
    warnings    jsonb NOT NULL,
    added_at    timestamptz NOT NULL,
    changed_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, owner, id),
    UNIQUE (tenant, owner, collection, path)
);

-- The canonical text of a document's current version, and where pages, sections and tables lie in it.
CREATE TABLE document_text (
    tenant  text NOT NULL,
    owner   text NOT NULL,
    id      text NOT NULL,
    body    text NOT NULL,
    outline jsonb NOT NULL,
    PRIMARY KEY (tenant, owner, id)
);

-- What a model reads around a hit: ranges of the text, in characters.
CREATE TABLE document_parent (
    tenant      text NOT NULL,
    owner       text NOT NULL,
    id          text NOT NULL,
    number      bigint NOT NULL,
    first       bigint NOT NULL,
    past        bigint NOT NULL,
    page        bigint,
    section     jsonb NOT NULL,
    PRIMARY KEY (tenant, owner, id, number)
);

-- What a model said of a document that is being added: paid once, whatever happens until the document is there.
CREATE TABLE document_draft (
    tenant      text NOT NULL,
    owner       text NOT NULL,
    id          text NOT NULL,
    hash        text NOT NULL,
    description jsonb NOT NULL,
    PRIMARY KEY (tenant, owner, id)
);
