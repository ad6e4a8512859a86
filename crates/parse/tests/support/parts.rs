//! Documents of several parts, as tests read them.

#[path = "package.rs"]
mod package;

use perihelion_parse::{Error, Limits, Parsed, parse};

use self::package::package;

/// Reads a document of these parts, each with its path, if it can be read.
pub fn tried(name: &str, parts: &[(&str, String)]) -> Result<Parsed, Error> {
    let parts: Vec<(&str, &[u8])> =
        parts.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    parse(&package(&parts), name, &Limits::default())
}

/// Reads a document of these parts, each with its path.
pub fn read(name: &str, parts: &[(&str, String)]) -> Parsed {
    tried(name, parts).unwrap()
}
