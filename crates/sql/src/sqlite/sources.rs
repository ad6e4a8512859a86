//! Which views and virtual tables show rows of other tables.

use std::collections::{BTreeMap, BTreeSet};

use super::authorizer::inside_view;
use super::names::words;
use super::reader::{Reader, database_error, in_main};
use crate::Result;
use crate::worker::Sources;

impl Reader {
    /// Returns what shows rows of what: views and virtual tables whose definition names a table. A virtual one can be a
    /// full-text index over its contents.
    pub async fn sources(&self) -> Result<Sources> {
        let all: Vec<(String, String, bool, bool)> = sqlx::query_as(
            "SELECT name, lower(sql), type = 'view', sql LIKE 'CREATE VIRTUAL%' FROM sqlite_schema \
             WHERE type IN ('table', 'view')",
        )
        .fetch_all(&self.catalogue)
        .await
        .map_err(database_error)?;
        let mut connection = self.catalogue.acquire().await.map_err(database_error)?;
        let known: BTreeSet<String> =
            all.iter().map(|(name, ..)| name.to_ascii_lowercase()).collect();
        let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, sql, is_view, is_virtual) in &all {
            let read = direct.entry(name.to_ascii_lowercase()).or_default();
            if *is_view {
                let mut handle = connection.lock_handle().await.map_err(database_error)?;
                read.extend(inside_view(&mut handle, name).into_iter().map(|(_, table)| table));
                // SQLite does not report a table that only counts rows or joins by USING, but each is named.
                read.extend(words(sql).filter(|word| known.contains(word)));
            } else if *is_virtual {
                read.extend(known.iter().filter(|other| names(sql, other)).cloned());
            }
        }
        let mut sources = Sources::new();
        for (name, ..) in &all {
            let mut shown = BTreeSet::new();
            let mut ahead = vec![name.to_ascii_lowercase()];
            while let Some(next) = ahead.pop() {
                let read = direct.get(&next).into_iter().flatten();
                ahead.extend(read.filter(|read| shown.insert((*read).clone())).cloned());
            }
            let source = |read: String| (in_main(name.clone()), Some(in_main(read)));
            sources.extend(shown.into_iter().map(source));
        }
        Ok(sources)
    }
}

/// Returns whether a definition has a name as a word; both are in lower case.
fn names(sql: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    sql.match_indices(name).any(|(at, _)| {
        !sql[..at].ends_with(is_part) && !sql[at + name.len()..].starts_with(is_part)
    })
}
