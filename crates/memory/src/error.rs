//! Why something could not be remembered.

/// Why something could not be remembered; the text tells the reader what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no skill of that id; `perihelion skills list` shows them: {0}")]
    UnknownSkill(String),
    #[error("nothing is remembered under that key; `perihelion memory list` shows what is: {0}")]
    UnknownKey(String),
    #[error("{what} may have at most {most} characters; it has {found}")]
    TooLong { what: &'static str, most: usize, found: usize },
    #[error("a key needs a name")]
    NoKey,
    #[error("line {line} of the skills file is no skill: {reason}")]
    Import { line: usize, reason: String },
    #[error("a stored skill cannot be read: {0}")]
    Damaged(String),
    #[error(transparent)]
    Recall(#[from] perihelion_recall::Error),
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
}
