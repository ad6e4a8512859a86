//! Writes rows as the text a model reads: one line per row, cells separated by ` | `.

use perihelion_analysis::joins::JoinPaths;
use serde_json::Value;

use crate::profile::{Column, PROFILED_ROWS};
use crate::{Answer, Description, FoundValues, Table, Validation};

/// Writes an answer with its header, and marks it if it is incomplete.
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
        let keys: Vec<String> = table
            .foreign_keys
            .iter()
            .map(|key| format!("{} → {}({})", key.columns.join(", "), key.table, key.to.join(", ")))
            .collect();
        let keys =
            if keys.is_empty() { String::new() } else { format!("; keys: {}", keys.join("; ")) };
        let comment =
            table.comment.as_deref().map_or_else(String::new, |text| format!(" -- {}", line(text)));
        format!("{}({}){view}{keys}{comment}", table.name, table.columns.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub fn of_description(description: &Description) -> String {
    let count = description.row_count.map_or_else(
        || "many rows".to_owned(),
        |count| format!("{count} row{}", if count == 1 { "" } else { "s" }),
    );
    let mut text = format!("{} {}, {count}\n", description.kind, description.name);
    let profiled = |column: &Column| column.min.is_some() || !column.frequent.is_empty();
    if description.is_sample && description.columns.iter().any(profiled) {
        text.push_str(&format!(
            "Ranges and frequent values are those of the first {PROFILED_ROWS} rows; the rest may have others.\n"
        ));
    }
    for column in &description.columns {
        let key = if column.primary_key { ", primary key" } else { "" };
        let null = if column.nullable { "" } else { ", not null" };
        let mut more = String::new();
        if let (Some(min), Some(max)) = (&column.min, &column.max) {
            more.push_str(&format!(", {} to {}", cell(min), cell(max)));
        }
        if !column.frequent.is_empty() {
            let values: Vec<String> = column.frequent.iter().map(cell).collect();
            more.push_str(&format!(", such as {}", values.join(", ")));
        }
        if let Some(comment) = &column.comment {
            more.push_str(&format!(" -- {}", line(comment)));
        }
        text.push_str(&format!("- {}: {}{key}{null}{more}\n", column.name, column.data_type));
    }
    for key in &description.foreign_keys {
        text.push_str(&format!(
            "- ({}) refers to {}({})\n",
            key.columns.join(", "),
            key.table,
            key.to.join(", ")
        ));
    }
    match &description.problem {
        Some(problem) if description.sample.columns.is_empty() => {
            text.push_str(&format!("The first rows cannot be shown: {problem}\n"));
        }
        _ => text.push_str(&format!("first rows:\n{}", rows(&description.sample))),
    }
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

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn of_values(found: &FoundValues) -> String {
    let mut lines: Vec<String> = found
        .values
        .iter()
        .map(|value| {
            let exact = if value.exact { "" } else { " (contains it)" };
            format!("{}.{} = {}{exact}", value.table, value.column, line(&value.value))
        })
        .collect();
    if lines.is_empty() {
        lines.push("No such value was found.".to_owned());
    }
    if found.incomplete {
        lines.push("(not every column could be looked through)".to_owned());
    }
    lines.join("\n")
}

pub fn of_paths(paths: &JoinPaths) -> String {
    let mut lines: Vec<String> = paths
        .paths
        .iter()
        .map(|path| {
            let joins = path.joins.iter().map(|join| {
                let inferred = if join.inferred { " (inferred)" } else { "" };
                format!("{}{inferred}", join.condition)
            });
            format!("{}: {}", path.tables.join(" → "), joins.collect::<Vec<_>>().join(" and "))
        })
        .collect();
    if !paths.unreachable.is_empty() {
        lines.push(format!("No key leads to: {}", paths.unreachable.join(", ")));
    }
    lines.join("\n")
}

pub fn of_validation(validation: &Validation) -> String {
    let mut text = match &validation.problem {
        Some(problem) => problem.clone(),
        None => format!("It may run; it reads: {}", validation.tables.join(", ")),
    };
    if let (Some(cost), Some(rows)) = (validation.estimated_cost, validation.estimated_rows) {
        text.push_str(&format!("\nEstimated: {rows:.0} rows at a cost of {cost:.0}"));
    }
    for warning in &validation.warnings {
        text.push_str(&format!("\nWarning: {warning}"));
    }
    text
}
