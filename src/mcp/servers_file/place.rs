//! Finds the line of a key, so that an error about a value points at it.

use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use super::Error;
use crate::config::strict;

/// Gives an error about a value of the file at `path` the line and column of its key, where that can be found.
pub(super) fn locate(path: &Path, text: &str, error: Error) -> Error {
    let Error::Value { path: named, key, message } = error else { return error };
    let offset = (named == path).then(|| offset(text, &key)).flatten();
    let Some(offset) = offset else { return Error::Value { path: named, key, message } };
    let (line, column) = strict::position(text, offset);
    let message = format!("{key}: {message}");
    Error::Parse { path: named, line, column, message, hint: String::new() }
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
