//! Writes rows as the text a model reads: one line per row, cells separated by ` | `.

use serde_json::Value;

use super::database::{Answer, Description, Table};

/// Writes an answer with its header, and says when it is not whole.
pub fn of_answer(answer: &Answer) -> String {
    let mut text = rows(answer);
    let count = answer.row_count;
    text.push_str(&format!("({count} row{}", if count == 1 { "" } else { "s" }));
    text.push_str(if answer.truncated { "; truncated: there is more)" } else { ")" });
    text
}

pub fn of_tables(tables: &[Table]) -> String {
    if tables.is_empty() {
        return "There is no table to read.".to_owned();
    }
    let lines = tables.iter().map(|table| {
        let view = if table.kind == "view" { " (view)" } else { "" };
        format!("{}({}){view}", table.name, table.columns.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub fn of_description(description: &Description) -> String {
    let count = description.row_count.map_or_else(
        || "many rows".to_owned(),
        |count| format!("{count} row{}", if count == 1 { "" } else { "s" }),
    );
    let mut text = format!("{} {}, {count}\n", description.kind, description.name);
    for column in &description.columns {
        let key = if column.primary_key { ", primary key" } else { "" };
        let null = if column.nullable { "" } else { ", not null" };
        text.push_str(&format!("- {}: {}{key}{null}\n", column.name, column.data_type));
    }
    text.push_str("first rows:\n");
    text.push_str(&rows(&description.sample));
    text
}

fn rows(answer: &Answer) -> String {
    let mut text = answer.columns.join(" | ");
    text.push('\n');
    for row in &answer.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        text.push_str(&cells.join(" | "));
        text.push('\n');
    }
    text
}

/// A cell on one line; line breaks inside it are shown, not obeyed.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.replace('\n', "\\n").replace('|', "\\|"),
        other => other.to_string(),
    }
}
