//! What a statement may read: the dialect it is written in and the tables it may name.

use sqlparser::ast::Ident;
use sqlparser::dialect::{PostgreSqlDialect, SQLiteDialect};

use crate::config::strict::nearest;

/// The SQL that a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub(super) fn syntax(self) -> &'static dyn sqlparser::dialect::Dialect {
        match self {
            Self::Sqlite => &SQLiteDialect {},
            Self::Postgres => &PostgreSqlDialect {},
        }
    }

    /// Returns the name under which the database would look the identifier up.
    pub(super) fn fold(self, ident: &Ident) -> String {
        match (self, ident.quote_style) {
            (Self::Postgres, Some(_)) => ident.value.clone(),
            (Self::Sqlite, _) => ident.value.to_ascii_lowercase(),
            // Postgres folds by its own rules beyond ASCII; such names must be quoted to be found.
            (Self::Postgres, None) => ident.value.to_ascii_lowercase(),
        }
    }
}

/// A table or view that exists and may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// `main` in SQLite.
    pub schema: String,
    pub name: String,
    /// It is found without naming its schema.
    pub unqualified: bool,
}

/// The tables that statements may read; everything else is refused.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub tables: Vec<TableName>,
}

impl Policy {
    pub(super) fn permits(&self, dialect: Dialect, schema: Option<&Ident>, name: &Ident) -> bool {
        let name = dialect.fold(name);
        let schema = schema.map(|schema| dialect.fold(schema));
        self.tables.iter().any(|table| {
            same(dialect, &table.name, &name)
                && match &schema {
                    Some(schema) => same(dialect, &table.schema, schema),
                    None => table.unqualified,
                }
        })
    }

    /// Returns what to say after an unknown table's name: the nearest one and the whole (short) list.
    pub(super) fn hint(&self, wrong: &str) -> String {
        let names: Vec<String> = self.tables.iter().map(TableName::shown).collect();
        let nearest = nearest(wrong, names.iter().map(String::as_str))
            .map_or_else(String::new, |best| format!("; did you mean {best}?"));
        match names.len() {
            0 => "; there is no table to read".to_owned(),
            1..=40 => format!("{nearest} Tables: {}", names.join(", ")),
            _ => format!("{nearest} Call list_tables for the list"),
        }
    }
}

impl TableName {
    /// Returns the name as a statement would write it: with its schema only where that is needed.
    pub fn shown(&self) -> String {
        let name = ident(&self.name);
        if self.unqualified { name } else { format!("{}.{name}", ident(&self.schema)) }
    }
}

/// Quotes a name that would not be read as itself without quotes.
fn ident(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts_plainly = !name.starts_with(|c: char| c.is_ascii_digit());
    if starts_plainly && !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn same(dialect: Dialect, known: &str, folded: &str) -> bool {
    match dialect {
        Dialect::Sqlite => known.eq_ignore_ascii_case(folded),
        Dialect::Postgres => known == folded,
    }
}
