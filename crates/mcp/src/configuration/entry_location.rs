//! Where in which file something stands: names it in errors, and finds its line.

use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use super::Error;
use perihelion_settings::config::strict;

/// Names the file and the server in errors.
pub(super) struct EntryLocation<'a> {
    pub path: &'a Path,
    /// What the key is called under which the servers stand.
    pub section: &'a str,
    pub server: &'a str,
}

impl EntryLocation<'_> {
    pub fn error(&self, key: &str, reason: impl Into<Reason>) -> Error {
        let dot = if key.is_empty() { "" } else { "." };
        Error::value(self.path, format!("{}.{}{dot}{key}", self.section, self.server), reason)
    }

    /// Says of a value that could not be read where it is.
    pub fn at<T>(&self, key: &str, read: Result<T, impl Into<Reason>>) -> Result<T, Error> {
        read.map_err(|reason| self.error(key, reason))
    }
}

type Reason = Box<dyn std::error::Error + Send + Sync>;

/// Refuses the first key that is set and has no business there.
pub(super) fn refuse(
    place: &EntryLocation<'_>,
    keys: &[(&str, bool)],
    why: &str,
) -> Result<(), Error> {
    match keys.iter().find(|(_, set)| *set) {
        Some((key, _)) => Err(place.error(key, why)),
        None => Ok(()),
    }
}

/// Gives an error about a value of the file at `path` the line and column of its key, where that can be found.
pub(super) fn locate(path: &Path, text: &str, error: Error) -> Error {
    match error {
        Error::Value { path: named, key, source, .. } if named == path => {
            let place = offset(text, &key).map(|offset| strict::position(text, offset));
            Error::Value { path: named, place, key, source }
        }
        other => other,
    }
}

/// Returns where the deepest part of a dotted key that is written begins.
fn offset(text: &str, key: &str) -> Option<usize> {
    let document = Document::parse(text).ok()?;
    let mut table: &dyn TableLike = document.as_table();
    let mut found = None;
    for part in key.split('.') {
        let Some((key, item)) = table.get_key_value(part) else { break };
        // A table's own header says more than the first of the dotted keys that it is made of.
        let place = match item {
            Item::Table(table) => table.span(),
            _ => None,
        };
        found = place.or_else(|| key.span()).map(|span| span.start).or(found);
        match item.as_table_like() {
            Some(next) => table = next,
            None => break,
        }
    }
    found
}
