//! Finds the places of a question's words in the data: `"Nike"` is a brand in this spelling.

use std::time::Duration;

use perihelion_analysis::guard::Refusal;
use perihelion_analysis::{Dialect, kind_of, suggestion};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::Error;
use crate::answer::Limits;
use crate::clock;
use crate::database::{Database, find, quoted};

/// Longest time spent looking, in all.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// Most columns that are looked through.
const MAX_COLUMNS: usize = 120;
const PER_COLUMN: usize = 5;
const MAX_FOUND: usize = 40;

/// A value of the data that is like the text that was looked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FoundValue {
    pub table: String,
    pub column: String,
    /// As it is stored.
    pub value: String,
    /// It is the text itself, but for case.
    pub exact: bool,
}

/// What was found, best first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FoundValues {
    pub values: Vec<FoundValue>,
    /// Not every column could be looked through in the time there was.
    pub incomplete: bool,
}

impl Database {
    /// Looks a text up in the text columns of the permitted tables, or of one.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] or [`Refusal::Column`] with the nearest name, or when the catalogue cannot be read.
    pub async fn find_values(
        &self,
        text: &str,
        table: Option<&str>,
        column: Option<&str>,
    ) -> Result<FoundValues, Error> {
        let catalogue = self.catalogue().await?;
        let tables: Vec<_> = match table {
            Some(name) => vec![find(&catalogue, name)?],
            None => catalogue.tables.iter().collect(),
        };
        let is_unknown = |name: &&str| tables.iter().all(|table| table.column(name).is_none());
        if let Some(name) = column.filter(is_unknown) {
            let columns = tables.iter().flat_map(|table| &table.columns);
            let names = columns.map(|known| known.name.as_str());
            let hint = suggestion(name, names).unwrap_or_default();
            return Err(Refusal::Column { name: name.to_owned(), hint }.into());
        }
        let places: Vec<_> = tables
            .into_iter()
            .flat_map(|table| table.columns.iter().map(move |column| (table, column)))
            .filter(|(_, found)| column.is_none_or(|name| found.name.eq_ignore_ascii_case(name)))
            .filter(|(_, found)| is_text(&found.data_type))
            .collect();
        let mut found = FoundValues { incomplete: places.len() > MAX_COLUMNS, values: Vec::new() };
        let until = clock::monotonic() + LOOK_LIMIT;
        let text = text.trim();
        let wanted = text.to_lowercase();
        if wanted.is_empty() {
            return Ok(found);
        }
        for (table, column) in places.into_iter().take(MAX_COLUMNS) {
            let left = until.saturating_duration_since(clock::monotonic());
            if left.is_zero() {
                found.incomplete = true;
                break;
            }
            let limits = Limits {
                max_rows: PER_COLUMN,
                max_columns: 1,
                max_cell_bytes: 200,
                timeout: left.min(Duration::from_secs(1)).max(Duration::from_millis(100)),
            };
            let name = self.dialect().quote(&column.name);
            let from = quoted(&table.name);
            let contains = contains(&format!("CAST({name} AS TEXT)"), text, self.dialect());
            let sql =
                format!("SELECT DISTINCT {name} FROM {from} WHERE {contains} LIMIT {PER_COLUMN}");
            match self.own(&sql, &catalogue, limits).await {
                Ok(answer) => {
                    for value in answer.rows.into_iter().flatten() {
                        let Value::String(value) = value else { continue };
                        let exact = value.trim().to_lowercase() == wanted;
                        let table = table.name.shown();
                        let column = column.name.clone();
                        found.values.push(FoundValue { table, column, value, exact });
                    }
                }
                Err(_) => found.incomplete = true,
            }
        }
        found.values.sort_by_key(|value| (!value.exact, value.value.len()));
        found.values.truncate(MAX_FOUND);
        Ok(found)
    }
}

/// Writes the condition that a column contains a text, in letters of either case.
fn contains(column: &str, text: &str, dialect: Dialect) -> String {
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    if dialect == Dialect::Sqlite {
        // Its `lower` and `LIKE` know the letters of English only.
        return format!("{column} REGEXP {}", literal(&format!("(?i){}", regex::escape(text))));
    }
    let escaped = text.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    // By the database's rules on both sides: in some locales it knows the letters of English only.
    format!("lower({column}) LIKE lower({}) ESCAPE '!'", literal(&format!("%{escaped}%")))
}

fn is_text(data_type: &str) -> bool {
    let data_type = kind_of(data_type).to_ascii_lowercase();
    data_type.is_empty()
        || ["char", "text", "clob", "enum", "string"].iter().any(|part| data_type.contains(part))
}
