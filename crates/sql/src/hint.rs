//! A hint for the writer of a rejected statement: the nearest real name after an unknown one, without data of rows.

use perihelion_analysis::{Catalogue, Table, suggestion};

use crate::Error;

/// Describes an error during the reading of rows: by the longest known beginning of its message, or by its kind, and by
/// its place. A message itself may quote values of rows that are not to be seen.
pub fn while_running(
    message: &str,
    beginnings: &[&'static str],
    kind: &'static str,
    place: Option<&str>,
) -> Error {
    let known = beginnings.iter().copied().filter(|known| message.starts_with(known));
    let summary = known.max_by_key(|known| known.len()).unwrap_or(kind);
    let place = place.map_or_else(String::new, |place| format!(", in {place}"));
    let message = format!(
        "{summary}{place}; errors show no value of a row, so find it with a query of its own"
    );
    Error::Database { message, hint: String::new() }
}

/// Words before the unknown name in the databases' messages, and what kind of name follows.
const OPENINGS: &[(&str, bool)] = &[
    ("no such column: ", true),
    ("column \"", true),
    ("column ", true),
    ("no such table: ", false),
    ("relation \"", false),
];

/// Returns a hint that starts with `; `; empty if the message names no unknown column or table.
pub fn for_message(message: &str, statement: &str, catalogue: &Catalogue) -> String {
    let Some((rest, is_column)) = OPENINGS
        .iter()
        .find_map(|(opening, is_column)| Some((message.strip_prefix(opening)?, *is_column)))
    else {
        return String::new();
    };
    let name: String = rest
        .trim_start_matches('"')
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'))
        .collect();
    let name = name.rsplit('.').next().unwrap_or_default();
    if !is_column {
        let names: Vec<String> = catalogue.tables.iter().map(|table| table.name.shown()).collect();
        return suggestion(name, names.iter().map(String::as_str)).unwrap_or_default();
    }
    let text = statement.to_lowercase();
    let mentioned: Vec<&Table> = catalogue
        .tables
        .iter()
        .filter(|table| text.contains(&table.name.name.to_lowercase()))
        .collect();
    let columns = mentioned.iter().flat_map(|table| table.columns.iter().map(|c| c.name.as_str()));
    let mut hint = suggestion(name, columns).unwrap_or_default();
    for table in mentioned.iter().take(4) {
        let separator = if hint.is_empty() { ";" } else { "" };
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        hint.push_str(&format!(
            "{separator} Columns of {}: {}.",
            table.name.shown(),
            names.join(", ")
        ));
    }
    hint
}

#[cfg(test)]
mod tests {
    use perihelion_analysis::Column;
    use perihelion_analysis::guard::TableName;

    use super::*;

    fn tables() -> Catalogue {
        let column = |name: &str| Column {
            name: name.into(),
            data_type: "text".into(),
            nullable: true,
            comment: None,
            values: Vec::new(),
        };
        let table = Table {
            name: TableName {
                schema: "main".into(),
                name: "transitions".into(),
                unqualified: true,
            },
            is_view: false,
            comment: None,
            columns: vec![column("zone"), column("changed_at")],
            primary_key: Vec::new(),
            unique: Vec::new(),
            foreign_keys: Vec::new(),
        };
        Catalogue { tables: vec![table] }
    }

    #[test]
    fn an_unknown_column_is_answered_with_the_nearest_and_the_table_s_columns() {
        let sql = "SELECT zone_name FROM transitions";
        for message in [
            "no such column: zone_name",
            "column \"zone_name\" does not exist",
            "no such column: \"zone_name\" - should this be a string literal?",
        ] {
            assert_eq!(
                for_message(message, sql, &tables()),
                "; did you mean zone? Columns of transitions: zone, changed_at."
            );
        }
        let qualified = "column t.changedat does not exist";
        assert!(for_message(qualified, sql, &tables()).starts_with("; did you mean changed_at?"));
    }

    #[test]
    fn other_messages_get_no_hint() {
        assert_eq!(for_message("misuse of aggregate: COUNT()", "SELECT 1", &tables()), "");
    }
}
