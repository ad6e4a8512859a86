//! Why a value of a setting is not acceptable.

use std::path::PathBuf;

/// Why a value is not acceptable; the error around it names the option, the variable, or the file and the key.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    #[error("expected {expected}: {found}")]
    Expected { expected: &'static str, found: String },
    #[error(transparent)]
    Word(#[from] serde::de::value::Error),
    #[error("expected a JSON object with issuer, audience and jwks_url: {0}")]
    Jwt(#[from] serde_json::Error),
    #[error("must be greater than zero")]
    NotPositive,
    #[error("must be a number of seconds greater than zero, at most a year: {0}")]
    Seconds(f64),
    #[error("must be between 0 and 2: {0}")]
    Temperature(f64),
    #[error("must be zero or more, in USD per million tokens: {0}")]
    Price(f64),
    #[error(
        "needs the price of every model that is used: add [models.prices.{0:?}] with input_per_mtok and \
         output_per_mtok"
    )]
    Unpriced(String),
    #[error("must not be empty")]
    Empty,
    #[error("must not carry a user name or password; name a variable in {0}")]
    Credentials(&'static str),
    #[error("must be an http:// or https:// address, such as {0}")]
    NotHttp(&'static str),
    #[error("the keys must be read over https://, not from: {0}")]
    NotHttps(String),
    #[error("{source}: {found}")]
    Url { source: url::ParseError, found: String },
    #[error(
        "the database address must start with sqlite:, postgres:// or memory:, such as sqlite:perihelion.db"
    )]
    Database,
    #[error("a token must have at least 16 letters, figures or signs, and no spaces")]
    Token,
    #[error("expected a number and a unit, such as 12h, 30d or 8w")]
    Age,
    #[error("expected headers as NAME=VALUE, separated by commas (the value is not shown)")]
    Headers,
    #[error("expected keys as NAME=file:PATH or NAME=env:VARIABLE, never the key itself")]
    KeyReferences,
    #[error("cannot read {}: {source}", path.display())]
    KeyFile { path: PathBuf, source: std::io::Error },
    #[error("the environment variable is not set: {0}")]
    KeyVariable(String),
    #[error(
        "a key is 64 hexadecimal digits, as `openssl rand -hex 32` makes them (it is not shown)"
    )]
    KeyDigits,
}
