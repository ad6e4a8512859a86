//! Why somebody was refused, or something about people could not be kept.

/// Why somebody was refused, or something about people could not be kept.
///
/// A refusal does not say which part was wrong: a stranger learns nothing of who is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Name and password belong to nobody, or to somebody who may not enter.
    #[error("wrong name or password")]
    WrongPassword,
    /// More passwords wait to be checked than may.
    #[error("too many concurrent logins; retry in a second")]
    Busy,
    /// A key, session or token that is unknown, revoked or expired.
    #[error("the credentials are not accepted: {0}")]
    NotAccepted(&'static str),
    /// Work in the name of a user whom somebody is not, and may not act for.
    #[error(
        "acting on behalf of this user requires their own credentials, or a key without a user and with the scope act_as: {0}"
    )]
    NotThem(String),
    /// A name that is taken within the tenant.
    #[error("the name is taken; choose another one: {0}")]
    Taken(String),
    /// A name or password that cannot be used.
    #[error("{0}")]
    Unfit(String),
    /// Nothing of this name, in this tenant.
    #[error("there is no {what} of this name: {name}")]
    Unknown { what: &'static str, name: String },
    /// The keys of a token's issuer cannot be read.
    #[error("cannot use the issuer's keys: {0}")]
    Jwks(String),
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    /// Hashing a password failed, for want of memory.
    #[error("failed to hash the password: {0}")]
    Hash(String),
}
