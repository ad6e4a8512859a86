//! Reads TOML files without unknown keys, and explains why a file or a value is rejected.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(
        "cannot read {}: {source}; create the settings file with `perihelion init`, or pass another one with --config",
        path.display()
    )]
    Settings { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// The text breaks TOML or the schema; `hint` names the nearest valid key for an unknown one.
    #[error("{}:{line}:{column}: {message}{hint}", path.display())]
    Parse { path: PathBuf, line: usize, column: usize, message: String, hint: String },
    /// A value is well-formed but invalid; the place is its line and column, if they are known.
    #[error("{}{}: {key}: {source}", path.display(), shown(*place))]
    Value { path: PathBuf, place: Option<(usize, usize)>, key: String, source: Reason },
    #[error("the environment variable {variable} is not acceptable: {source}")]
    Environment { variable: String, source: Invalid },
    #[error("unknown environment variable: {variable}{hint}")]
    UnknownVariable { variable: String, hint: String },
    #[error("the option {option} is not acceptable: {source}")]
    Option { option: String, source: Invalid },
}

/// Why a value is not acceptable; the error around it names the option, the variable, or the file and the key.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    #[error("expected {expected}: {found}")]
    Expected { expected: &'static str, found: String },
    #[error(transparent)]
    Word(#[from] serde::de::value::Error),
    #[error("expected a JSON object with the keys of its table in the settings file: {0}")]
    Json(#[from] serde_json::Error),
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
    #[error("must be an https:// address, or http:// on this machine: {0}")]
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

type Reason = Box<dyn std::error::Error + Send + Sync>;

impl Error {
    /// Makes the error for a value of a file that is well-formed but not acceptable.
    pub fn value(path: &Path, key: impl Into<String>, reason: impl Into<Reason>) -> Self {
        let path = path.to_owned();
        Self::Value { path, place: None, key: key.into(), source: reason.into() }
    }

    /// Makes the error for a file that is `not` what it should be, at the place that the parser of JSON names.
    pub fn of_json(path: &Path, error: &serde_json::Error, not: &str, hint: &str) -> Self {
        let message = format!("not {not}: {error}");
        let path = path.to_owned();
        Self::Parse { path, line: error.line(), column: error.column(), message, hint: hint.into() }
    }
}

fn shown(place: Option<(usize, usize)>) -> String {
    place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}

/// Reads and parses a file.
///
/// # Errors
/// [`Error::Read`] when the file cannot be read, otherwise as [`parse`].
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    parse(path, &read(path)?)
}

/// Reads a file as text.
///
/// # Errors
/// [`Error::Read`].
pub fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Parses TOML text; `path` only names the file in errors.
///
/// Types are expected to carry `#[serde(deny_unknown_fields)]`.
///
/// # Errors
/// [`Error::Parse`] with line, column and, for an unknown key, the nearest valid one.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    toml_edit::de::from_str(text).map_err(|error| {
        let (line, column) = error.span().map_or((1, 1), |span| position(text, span.start));
        let message = plain(error.message());
        let hint = nearest_hint(&message);
        Error::Parse { path: path.to_owned(), line, column, message, hint }
    })
}

/// Replaces the names of Rust's types in a message of the parser.
fn plain(message: &str) -> String {
    let (start, kind) = message.rsplit_once("expected ").unwrap_or((message, ""));
    match kind {
        "f64" => format!("{start}expected a number"),
        "u32" | "u64" | "usize" => format!("{start}expected a whole number of 0 or more"),
        _ => message
            .replace("invalid socket address syntax", "expected IP:PORT, such as 127.0.0.1:2024"),
    }
}

pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

/// Turns serde's "unknown field `x`, expected one of `a`, `b`" into a suggestion.
fn nearest_hint(message: &str) -> String {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return String::new();
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(wrong) = quoted.next() else { return String::new() };
    nearest(wrong, quoted).map_or_else(String::new, |best| format!("; did you mean `{best}`?"))
}

/// Returns the end of a message about an unknown name, with the candidate most similar to `wrong`, if there is one.
pub fn suggestion<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(wrong, candidates).map(|best| format!("; did you mean {best}?"))
}

/// Suggests in parentheses the candidate most similar to `wrong`; empty without a similar one.
pub fn did_you_mean<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, candidates).map_or_else(String::new, |best| format!(" (did you mean {best}?)"))
}

/// Returns the candidate most similar to `wrong`, if any is similar enough to suggest.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // People see swapped letters of a short word as similar; the first measure does not.
    let slips = |candidate: &str| {
        let most = (wrong.chars().count() / 4).max(1);
        let slips = strsim::osa_distance(wrong, candidate);
        if slips <= most && slips < candidate.chars().count() {
            0.95 - 0.05 * slips as f64
        } else {
            0.0
        }
    };
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(wrong, candidate).max(slips(candidate)), candidate))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only its name matters here")]
        timeout_sec: u64,
    }

    #[test]
    fn a_value_of_another_type_is_refused_without_names_of_rust() {
        let error = parse::<Sample>(Path::new("a.toml"), "timeout_sec = \"x\"\n").unwrap_err();
        assert!(error.to_string().ends_with("expected a whole number of 0 or more"), "{error}");
    }

    #[test]
    fn letters_that_changed_places_get_their_suggestion() {
        assert_eq!(nearest("ulr", ["model", "url", "rule"]), Some("url"));
        assert_eq!(nearest("x", ["a", "b"]), None);
        assert_eq!(nearest("modle", ["model", "url"]), Some("model"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_place_and_the_nearest_valid_key() {
        let error = parse::<Sample>(Path::new("a.toml"), "# note\ntimeout_secs = 3\n").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("a.toml:2:1: unknown field `timeout_secs`"), "{text}");
        assert!(text.ends_with("did you mean `timeout_sec`?"), "{text}");
    }
}
