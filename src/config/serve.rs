//! The section of the service.

use std::net::SocketAddr;

use serde::Deserialize;

use super::resolve::{Setting, any, positive, seconds, section};

section! {
    /// What `perihelion serve` does.
    Serve, ServeFile, "serve" {
        /// Address to listen on; beyond loopback only with a token.
        addr: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 2024)), "PERIHELION_SERVE_ADDR", any;
        /// What clients must send as `x-api-key` or as a bearer token; none: anybody who reaches a loopback address may.
        token: Option<Token> = None, "PERIHELION_SERVE_TOKEN", any;
        /// Names that requests may be addressed to, beside loopback ones; with none named and a token set, any name.
        hosts: Names = Names::default(), "PERIHELION_SERVE_HOSTS", any;
        /// Origins whose pages may use the service, such as `https://chat.example.org`; pages of this machine may.
        origins: Names = Names::default(), "PERIHELION_SERVE_ORIGINS", any;
        /// Open connections; more wait.
        max_connections: usize = 16_384, "PERIHELION_SERVE_MAX_CONNECTIONS", positive;
        /// Seconds that requests under way may take when the service ends.
        drain_sec: f64 = 10.0, "PERIHELION_SERVE_DRAIN_SEC", seconds;
    }
}

/// A list of names; in an environment variable they are parted by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Names(pub Vec<String>);

impl Setting for Names {
    fn from_text(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self(names.map(str::to_owned).collect()))
    }
}

/// A secret that clients must know; `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Token(String);

impl Token {
    /// Returns the secret, for comparing only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Token {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.len() >= 16 && text.chars().all(|letter| letter.is_ascii_graphic()) {
            true => Ok(Self(text)),
            false => {
                Err("a token must have at least 16 letters, figures or signs, and no spaces".into())
            }
        }
    }
}

impl Setting for Token {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}
