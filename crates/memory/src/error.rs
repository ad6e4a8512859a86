//! Why something could not be remembered.

/// Why a skill or memory could not be stored; the text contains the next step for the reader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown skill: {0}; run `perihelion skills list` to list skills")]
    UnknownSkill(String),
    #[error("no memory has that key: {0}; run `perihelion memory list` to list the keys")]
    UnknownKey(String),
    #[error("{what} has {found} characters; the limit is {most}")]
    TooLong { what: &'static str, most: usize, found: usize },
    #[error("a key needs a name")]
    NoKey,
    #[error("line {line} of the skills file is not a skill: {reason}")]
    Import {
        line: usize,
        #[source]
        reason: perihelion_database::Cause,
    },
    #[error("a stored skill cannot be read: {0}")]
    Damaged(#[source] serde_json::Error),
    #[error(transparent)]
    Recall(#[from] perihelion_recall::Error),
    /// The database failed, which each method that uses it can report.
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
