//! From a database address to the store behind it.

use std::sync::Arc;

use super::{Error, MemoryStore, PostgresStore, SqliteStore, Store};

/// Opens the store an address names, migrating it when needed.
///
/// `memory:` keeps threads for the life of the process, `sqlite:PATH` or a bare path is a file (made
/// when missing), `postgres://` and `postgresql://` name a server.
///
/// # Errors
/// [`Error::Unreachable`] for an address that is none of these or cannot be opened, [`Error::Newer`]
/// when the database was migrated by a newer version.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, Error> {
    match scheme(url) {
        Some("memory") => Ok(Arc::new(MemoryStore::new())),
        Some("postgres" | "postgresql") => Ok(Arc::new(PostgresStore::open(url).await?)),
        Some("sqlite") => Ok(Arc::new(SqliteStore::open(url).await?)),
        Some(other) => Err(Error::Unreachable {
            url: redact_url(url),
            reason: format!(
                "unknown kind of database, use postgres://, sqlite: or memory: instead of: {other}"
            ),
        }),
        None => Ok(Arc::new(SqliteStore::open(url).await?)),
    }
}

/// Tells whether the database that an address names is there, as far as that is known without a connection to it.
///
/// # Errors
/// [`Error::Unreachable`] for an address that names no file.
pub fn is_there(url: &str) -> Result<bool, Error> {
    match scheme(url) {
        Some("sqlite") | None => SqliteStore::is_there(url),
        Some(_) => Ok(true),
    }
}

/// Returns what stands before the first colon when it can be a scheme; a path such as `./a:b` has none.
fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(plain))
    .then_some(scheme)
}

/// Hides the passwords in a database address: in its user part and in its parameters.
pub fn redact_url(url: &str) -> String {
    let (address, parameters) = match url.rsplit_once('@') {
        // An unescaped `?` may stand in the password: parameters start after the user part.
        Some((user, rest)) => {
            let (rest, parameters) = split_parameters(rest);
            (format!("{}@{rest}", without_password(user)), parameters)
        }
        None => {
            let (address, parameters) = split_parameters(url);
            (address.to_owned(), parameters)
        }
    };
    let Some(parameters) = parameters else { return address };
    let shown: Vec<String> = parameters
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}=***"),
            _ => pair.to_owned(),
        })
        .collect();
    format!("{address}?{}", shown.join("&"))
}

fn split_parameters(text: &str) -> (&str, Option<&str>) {
    match text.split_once('?') {
        Some((address, parameters)) => (address, Some(parameters)),
        None => (text, None),
    }
}

fn without_password(user: &str) -> String {
    let start = user.find("://").map_or(0, |at| at + 3);
    match user[start..].find(':') {
        Some(colon) => format!("{}:***", &user[..start + colon]),
        None => user.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_they_stand() {
        for (url, shown) in [
            ("postgres://ann:s3cret@db:5432/p", "postgres://ann:***@db:5432/p"),
            ("postgres://ann:s3/c?r@et@db/p?a=b", "postgres://ann:***@db/p?a=b"),
            ("postgres://ann@db/p?password=s3cret&a=b", "postgres://ann@db/p?password=***&a=b"),
            (
                "postgres:///p?host=/run&sslpassword=s3cret",
                "postgres:///p?host=/run&sslpassword=***",
            ),
            ("sqlite:/data/p.db", "sqlite:/data/p.db"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
    }

    #[tokio::test]
    async fn an_address_of_an_unknown_kind_is_refused_by_name() {
        let message = open("mysql://root:s3cret@db/p").await.err().unwrap().to_string();
        assert!(message.contains("mysql") && message.contains("sqlite:"), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
}
