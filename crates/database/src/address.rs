//! The target of a database address.

use std::ops::Range;
use std::path::PathBuf;

use crate::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// It ends with its opener.
    Memory,
    File(PathBuf),
    Server,
}

/// Reads an address.
///
/// # Errors
/// [`Error::Unreachable`] for one of an unknown kind.
pub fn read(url: &str) -> Result<Address, Error> {
    match scheme(url) {
        Some("memory") => Ok(Address::Memory),
        Some("postgres" | "postgresql") => Ok(Address::Server),
        Some("sqlite") | None => Ok(Address::File(path_of(url)?)),
        Some(other) => Err(Error::Unreachable {
            url: redact_url(url),
            reason: format!(
                "unknown kind of database, use postgres://, sqlite: or memory: instead of: {other}"
            )
            .into(),
        }),
    }
}

/// Returns whether the database of an address exists, as known without a connection to it.
///
/// # Errors
/// [`Error::Unreachable`] for an address of an unknown kind or without a file.
pub fn is_there(url: &str) -> Result<bool, Error> {
    match read(url)? {
        Address::File(path) => Ok(path.exists()),
        Address::Memory | Address::Server => Ok(true),
    }
}

/// Reads `sqlite:PATH` or `sqlite://PATH`; anything else is the path itself.
///
/// # Errors
/// [`Error::Unreachable`] for an address that names no file.
pub fn path_of(url_or_path: &str) -> Result<PathBuf, Error> {
    let wrong =
        |reason: &str| Error::Unreachable { url: url_or_path.to_owned(), reason: reason.into() };
    let path = match url_or_path.strip_prefix("sqlite:") {
        Some(rest) => {
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            match rest.split_once('?') {
                None => rest,
                // What other tools write to have the file made, as happens here anyway.
                Some((path, "mode=rwc")) => path,
                Some(_) => return Err(wrong("an SQLite address takes no parameters")),
            }
        }
        None => url_or_path,
    };
    match path {
        "" => Err(wrong("no file is named")),
        ":memory:" => Err(wrong("for threads that need no file the address is memory:")),
        path => Ok(PathBuf::from(path)),
    }
}

/// Returns the part before the first colon if it can be a scheme; a path such as `./a:b` has none.
fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(plain))
    .then_some(scheme)
}

/// Hides the passwords in a database address: in its user part and in its parameters.
///
/// A password may contain an unescaped `?`, `@` or `:`, so what may be either a password or something else is hidden.
pub fn redact_url(url: &str) -> String {
    let mut secrets: Vec<Range<usize>> = password_of_user(url).into_iter().collect();
    secrets.extend(passwords_in_parameters(url));
    secrets.sort_by_key(|secret| secret.start);
    let mut shown = String::new();
    let mut end = 0;
    for secret in secrets {
        if secret.start >= end {
            shown.push_str(&url[end..secret.start]);
            shown.push_str("***");
        }
        end = end.max(secret.end);
    }
    shown + &url[end..]
}

/// Finds what stands between the first colon after the scheme and the last `@`.
fn password_of_user(url: &str) -> Option<Range<usize>> {
    let end = url.rfind('@')?;
    let user = url.find("://").map_or(0, |at| at + 3);
    let colon = url.get(user..end)?.find(':')?;
    Some(user + colon + 1..end)
}

/// Finds the values of the parameters after the first `?` whose names contain `pass`.
fn passwords_in_parameters(url: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = url.find('?').map_or(url.len(), |at| at + 1);
    for pair in url[start..].split('&') {
        let end = start + pair.len();
        if let Some((name, _)) = pair.split_once('=')
            && name.to_ascii_lowercase().contains("pass")
        {
            found.push(start + name.len() + 1..end);
        }
        start = end + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_everywhere_in_an_address() {
        for (url, shown) in [
            ("postgres://ann:s3cret@db:5432/p", "postgres://ann:***@db:5432/p"),
            ("postgres://ann:s3/c?r@et@db/p?a=b", "postgres://ann:***@db/p?a=b"),
            ("postgres://ann@db/p?password=s3cret&a=b", "postgres://ann@db/p?password=***&a=b"),
            (
                "postgres:///p?host=/run&sslpassword=s3cret",
                "postgres:///p?host=/run&sslpassword=***",
            ),
            ("postgres://ann@db/p?password=s3@cret", "postgres://ann@db/p?password=***"),
            (
                "postgres://ann@db/p?password=s3cret&options=a@b",
                "postgres://ann@db/p?password=***&options=a@b",
            ),
            ("postgres://ann@db:5432/p?password=s3@cret", "postgres://ann@db:***"),
            ("postgres://ann:s3?xpass=cret@db/p", "postgres://ann:***"),
            (
                "postgres://ann:s3cret@db/p?password=s3cret&a=b",
                "postgres://ann:***@db/p?password=***&a=b",
            ),
            ("sqlite:/data/p.db", "sqlite:/data/p.db"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
    }

    #[test]
    fn an_address_of_an_unknown_kind_is_refused_by_name() {
        let message = read("mysql://root:s3cret@db/p").err().unwrap().to_string();
        assert!(message.contains("mysql") && message.contains("sqlite:"), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }

    #[test]
    fn a_file_is_named_with_a_scheme_or_without() {
        for url in
            ["sqlite:/data/p.db", "sqlite:///data/p.db", "/data/p.db", "sqlite:/data/p.db?mode=rwc"]
        {
            assert_eq!(read(url).unwrap(), Address::File(PathBuf::from("/data/p.db")), "{url}");
        }
        assert!(read("sqlite:/data/p.db?cache=shared").is_err());
    }
}
