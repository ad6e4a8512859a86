//! Why an item could not be stored or found.

/// Why an item could not be stored or found; the text contains the next step for the reader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a lookup needs a tenant and an owner; one of them is empty")]
    Nobody,
    #[error("an item needs a kind and an id; one of them is empty")]
    Unnamed,
    #[error(
        "a vector of {found} numbers does not fit the model {model}, whose vectors have {expected}; check the embeddings dimension in the settings"
    )]
    Dimension { model: String, expected: usize, found: usize },
    #[error(
        "the vectors of {model} are not complete, {missing} items have none; embed them before the switch"
    )]
    Incomplete { model: String, missing: u64 },
    #[error("there is no generation of vectors by this model: {0}; begin it first")]
    UnknownModel(String),
    #[error("the index of the kind {kind} is damaged ({what}); rebuild it from its sources")]
    Damaged { kind: String, what: String },
    #[error(transparent)]
    Embedding(#[from] crate::EmbeddingError),
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
