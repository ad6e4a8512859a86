//! Why a caller was rejected, or a change of users and keys failed.

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a caller was rejected, or a change of users and keys failed.
///
/// A refusal does not name the wrong part, so unauthenticated callers learn no user names.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("wrong name or password")]
    WrongPassword,
    #[error("too many concurrent logins; retry in a second")]
    Busy,
    #[error("the credentials are not accepted: {0}")]
    NotAccepted(&'static str),
    #[error(
        "acting on behalf of this user requires their own credentials, or a key without a user and with the scope act_as: {0}"
    )]
    NotThem(String),
    #[error("the name is taken; choose another one: {0}")]
    Taken(String),
    #[error("{0}")]
    Unfit(String),
    #[error(
        "there is no {what} of this name: {name}; run `perihelion {what}s list` to list {what}s"
    )]
    Unknown { what: &'static str, name: String },
    #[error("cannot use the issuer's keys: {0}")]
    Jwks(#[source] perihelion_database::Cause),
    /// The database failed, which each method that uses it can report.
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    #[error("the system provides no random numbers")]
    NoRandom,
    #[error("failed to hash the password: {0}")]
    Hash(#[source] perihelion_database::Cause),
}

impl Error {
    /// Explains why a row of this name could not be added.
    pub(crate) fn of_name(error: perihelion_database::Error, name: &str) -> Self {
        if error.is_duplicate() { Self::Taken(name.to_owned()) } else { error.into() }
    }
}
