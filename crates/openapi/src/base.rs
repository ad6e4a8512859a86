//! The address that requests start from.

use url::Url;

use crate::{Catalogue, Error, Operation, Result, Server};

/// An origin with a path prefix, which no rendered request leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    url: Url,
}

/// The possible sources of a base address, in the order of precedence.
#[derive(Clone, Debug, Default)]
pub struct BaseChoice<'a> {
    pub context: Option<&'a str>,
    pub environment: Option<&'a str>,
    pub configured: Option<&'a str>,
    pub variables: &'a [(String, String)],
    /// The address of the document, for servers that are relative to it.
    pub document: Option<&'a str>,
}

impl Base {
    /// Reads an absolute address, without its query.
    ///
    /// # Errors
    /// [`Error::BadBase`] for anything but http and https with a host, or with credentials or a fragment in it.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || Error::BadBase(shown(text));
        let mut url = Url::parse(text.trim()).map_err(|_| bad())?;
        // A parser takes the first part of the path for the host where the host is empty.
        let host = text.split_once("://").map_or("", |(_, rest)| rest);
        if host.is_empty() || host.starts_with(['/', '\\', '.']) {
            return Err(bad());
        }
        let is_plain =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || !is_plain {
            return Err(bad());
        }
        url.set_query(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self { url })
    }

    /// Chooses the base of an operation.
    ///
    /// # Errors
    /// [`Error::NoBase`] without an absolute one, [`Error::BadBase`] for an invalid one.
    pub fn choose(
        catalogue: &Catalogue,
        operation: &Operation,
        choice: &BaseChoice<'_>,
    ) -> Result<Self> {
        let given = [choice.context, choice.environment, choice.configured];
        if let Some(given) = given.into_iter().flatten().find(|text| !text.trim().is_empty()) {
            return Self::parse(given);
        }
        let servers =
            if operation.servers.is_empty() { &catalogue.servers } else { &operation.servers };
        let mut found = servers.iter().filter_map(|server| server.address(choice));
        // Of several, the first encrypted one.
        let mut addresses: Vec<String> = found.by_ref().collect();
        addresses.sort_by_key(|address| !address.starts_with("https://"));
        match (addresses.first(), choice.document) {
            (Some(address), _) => Self::parse(address),
            // A description without servers is served beside them.
            (None, Some(document)) if servers.is_empty() => {
                let url = Url::parse(document).ok().and_then(|url| url.join("/").ok());
                url.map_or(Err(Error::NoBase), |url| Self::parse(url.as_str()))
            }
            _ => Err(Error::NoBase),
        }
    }

    /// Returns the address without a slash at its end.
    pub fn as_str(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// Returns whether an address has this origin, and this path before its own.
    pub fn contains(&self, url: &Url) -> bool {
        let prefix = self.url.path().trim_end_matches('/');
        let rest = url.path().strip_prefix(prefix);
        let is_plain = url.username().is_empty() && url.password().is_none();
        is_plain
            && url.origin() == self.url.origin()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    pub(crate) fn prefix(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }
}

impl Server {
    /// Fills in the variables, and makes the address absolute if the document's own is known.
    fn address(&self, choice: &BaseChoice<'_>) -> Option<String> {
        let mut url = self.url.clone();
        for (name, default) in &self.variables {
            let given =
                choice.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            url = url.replace(&format!("{{{name}}}"), given.unwrap_or(default));
        }
        for (name, value) in choice.variables {
            url = url.replace(&format!("{{{name}}}"), value);
        }
        if url.contains('{') {
            return None;
        }
        if url.starts_with("//") {
            return Some(format!("https:{url}"));
        }
        if url.contains("://") {
            return Some(url);
        }
        let document = Url::parse(choice.document?).ok()?;
        document.join(&url).ok().map(String::from)
    }
}

/// Leaves out what may be a password.
fn shown(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(start), Some(end)) if start < end => {
            format!(
                "{}…{}",
                text.get(..start + 3).unwrap_or_default(),
                text.get(end..).unwrap_or_default()
            )
        }
        _ => text.to_owned(),
    }
}
