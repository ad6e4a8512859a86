//! The permissions of a statement: the tables it can name, their columns, and their visible rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sqlparser::ast::Ident;

use crate::{Dialect, suggestion};

/// A table or view that exists and may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableName {
    /// `main` in SQLite and DuckDB.
    pub schema: String,
    pub name: String,
    /// It is found without naming its schema.
    pub unqualified: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permitted {
    pub name: TableName,
    /// Its columns, in order.
    pub columns: Vec<String>,
    /// Only rows for which this condition holds are there, whatever the statement says.
    pub filter: Option<String>,
}

/// The tables that statements may read; everything else is refused.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub tables: Vec<Permitted>,
    /// Schemas of the functions of the database's extensions, of those in
    /// [`EXTENSION_FUNCTIONS`](super::EXTENSION_FUNCTIONS).
    pub extensions: BTreeMap<String, String>,
}

impl Policy {
    pub(super) fn find(
        &self,
        dialect: Dialect,
        schema: Option<&Ident>,
        name: &Ident,
    ) -> Option<&Permitted> {
        let name = dialect.fold(name);
        let schema = schema.map(|schema| dialect.fold(schema));
        self.tables.iter().find(|table| {
            let table = &table.name;
            dialect.same(&table.name, &name)
                && match &schema {
                    Some(schema) => dialect.same(&table.schema, schema),
                    None => table.unqualified,
                }
        })
    }

    /// Returns what to say after an unknown table's name.
    pub(super) fn hint(&self, wrong: &str) -> String {
        table_hint(wrong, self.tables.iter().map(|table| &table.name))
    }
}

/// Returns what to say after an unknown table's name: the nearest one, and the first of the list.
pub fn table_hint<'a>(wrong: &str, tables: impl Iterator<Item = &'a TableName>) -> String {
    /// Most tables that are listed.
    const MOST: usize = 40;
    let names: Vec<String> = tables.map(TableName::shown).collect();
    if names.is_empty() {
        return "; there is no table to read".to_owned();
    }
    let nearest = suggestion(wrong, names.iter().map(String::as_str)).unwrap_or_default();
    let listed = names[..names.len().min(MOST)].join(", ");
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{nearest} Tables: {listed}{more}")
}

impl TableName {
    /// Returns the name for a statement: with its schema only if necessary.
    pub fn shown(&self) -> String {
        let name = shown(&self.name);
        if self.unqualified { name } else { format!("{}.{name}", shown(&self.schema)) }
    }
}

/// Quotes a name that would not be read as itself without quotes.
pub(crate) fn shown(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts_plainly = !name.starts_with(|c: char| c.is_ascii_digit());
    if starts_plainly && !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
