//! Collects the context of a statement: tables, fields, keys, and the places of the question's words in the data.

use perihelion_analysis::linking::Linker;
use serde_json::{Value, json};

use super::super::known;
use super::super::turn::{Doc, Newest, Pack, Survey, Turn, TurnUpdate};
use super::surveyed;
use crate::pipeline::{Stage, StageError, StageResult, Step};

/// Most tables in the pack; a smaller schema is given whole.
const MAX_TABLES: usize = 12;
/// Most tables that are looked at closely.
const MAX_DESCRIBED: usize = 8;
/// Most words of the question that are looked for in the data.
const MAX_LOOKED_UP: usize = 4;
/// Tool calls reserved for the statement, its checks and its repair.
const LEFT: usize = 4;

/// Makes the pack, with an id on every piece.
pub async fn ground(stage: Stage<Turn>) -> StageResult<Turn> {
    let survey = surveyed(&stage)?.clone();
    stage.progress("choosing tables");
    let mut question = stage.query().to_owned();
    for answered in &stage.state().answers {
        question.push_str(&format!(" {}", answered.answer));
    }
    // Definitions go first: a number that has one must not be made up.
    let (metric_docs, verified_queries, tables) =
        known::docs(&known::knowledge_of(stage.server())?, &question);
    let (values, mut found_in) = look_up(&stage, &question, &survey).await?;
    for table in tables {
        let at = survey.catalogue.tables.iter().position(|one| one.name.shown() == table);
        found_in.extend(at.filter(|at| !found_in.contains(at)));
    }
    let linker = Linker::new(&survey.catalogue);
    let picked = linker.pick(&question, &found_in, MAX_TABLES);
    let evidence = linker.rank(&question).evidence;
    let mut pack = Pack { metric_docs, verified_queries, values, evidence, ..Pack::default() };
    for at in &picked {
        let table = &survey.catalogue.tables[*at];
        let name = table.name.shown();
        let kind = if table.is_view { "view" } else { "table" };
        let key = if table.primary_key.is_empty() {
            String::new()
        } else {
            format!(", primary key ({})", table.primary_key.join(", "))
        };
        let comment = table.comment.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        pack.table_docs.push(Doc {
            id: format!("table:{name}"),
            text: format!("{kind} {name}{key}{comment}"),
        });
        for column in &table.columns {
            let text = format!("{name}.{} {}", column.name, column.data_type);
            pack.field_docs.push(Doc { id: format!("field:{name}.{}", column.name), text });
        }
        pack.suggested_tables.push(name);
    }
    describe(&stage, &mut pack).await?;
    let named: Vec<_> = picked.iter().map(|at| survey.catalogue.tables[*at].name.clone()).collect();
    for join in linker.graph().joins() {
        let inside = |table: &String| pack.suggested_tables.contains(table);
        if inside(&join.table) && inside(&join.to_table) {
            let inferred = if join.inferred { " (inferred from names)" } else { "" };
            let id = format!("join:{}.{}", join.table, join.columns.join("+"));
            let again = if join.table == join.to_table {
                ", the second an alias of the same table"
            } else {
                ""
            };
            let text = format!("{}, many to one{inferred}{again}", join.condition);
            pack.relationship_docs.push(Doc { id, text });
        }
    }
    if named.len() > 1 {
        pack.suggested_join_paths = linker.graph().paths(&named).paths;
    }
    Ok(Step::next(TurnUpdate::new().pack(Some(pack))))
}

/// Looks up names and quoted words of the question, and returns their places.
async fn look_up(
    stage: &Stage<Turn>,
    question: &str,
    survey: &Survey,
) -> Result<(Vec<String>, Vec<usize>), StageError> {
    let mut lines = Vec::new();
    let mut found_in = Vec::new();
    if !stage.has_tool("find_values") {
        return Ok((lines, found_in));
    }
    for word in names_in(question).into_iter().take(MAX_LOOKED_UP.min(spare(stage))) {
        let reply = stage.call("find_values", json!({ "text": word })).await?;
        let found = reply.structured.unwrap_or_default();
        let values = found.get("values").and_then(Value::as_array).cloned().unwrap_or_default();
        for value in values.iter().take(5) {
            let part = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
            let table = part("table");
            let column = part("column");
            let stored = part("value");
            lines.push(format!("“{word}” stands in {table}.{column} as '{stored}'"));
            let at = survey.catalogue.tables.iter().position(|t| t.name.shown() == table);
            if let Some(at) = at.filter(|at| !found_in.contains(at)) {
                found_in.push(at);
            }
        }
    }
    Ok((lines, found_in))
}

/// Returns how many calls of tools may be made before the statement.
fn spare(stage: &Stage<Turn>) -> usize {
    stage.budget().tool_calls.saturating_sub(LEFT)
}

/// Returns quoted and capitalized words of a question, except its first word.
fn names_in(question: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, part) in question.split(['"', '“', '”']).enumerate() {
        if at % 2 == 1 && !part.trim().is_empty() {
            names.push(part.trim().to_owned());
        }
    }
    let mut run: Vec<&str> = Vec::new();
    let mut begins = true;
    for word in question.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_name = bare.chars().next().is_some_and(char::is_uppercase) && !begins;
        if is_name {
            run.push(bare);
        }
        let ends = word.ends_with([',', '.', '?', '!', ';', ':']);
        if (!is_name || ends) && !run.is_empty() {
            names.push(run.join(" "));
            run.clear();
        }
        begins = word.ends_with(['.', '?', '!']);
    }
    if !run.is_empty() {
        names.push(run.join(" "));
    }
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        if name.chars().count() > 2 && !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

/// Adds types, ranges and frequent values of the tables, if the server provides them.
async fn describe(stage: &Stage<Turn>, pack: &mut Pack) -> Result<(), StageError> {
    if !stage.has_tool("describe") {
        return Ok(());
    }
    let most = MAX_DESCRIBED.min(spare(stage));
    let tables: Vec<String> = pack.suggested_tables.iter().take(most).cloned().collect();
    for table in tables {
        let reply = stage.call("describe", json!({ "table": table })).await?;
        let Some(described) = reply.structured.filter(|_| !reply.is_error) else { continue };
        let is_sample = described.get("is_sample").and_then(Value::as_bool).unwrap_or_default();
        let of = if is_sample { " in the first rows" } else { "" };
        for column in described.get("columns").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = column.get("name").and_then(Value::as_str) else { continue };
            let id = format!("field:{table}.{name}");
            let Some(doc) = pack.field_docs.iter_mut().find(|doc| doc.id == id) else { continue };
            let words = |key: &str| column.get(key).filter(|value| !value.is_null());
            if let (Some(min), Some(max)) = (words("min"), words("max")) {
                doc.text.push_str(&format!(", {min} to {max}{of}"));
                if let Some(value) = max.as_str().filter(|value| known::is_date(value)) {
                    let table = table.clone();
                    let column = name.to_owned();
                    let value = value.to_owned();
                    pack.newest.push(Newest { table, column, value, is_sample });
                }
            }
            if let Some(Value::Array(frequent)) = words("frequent") {
                let values: Vec<String> = frequent.iter().map(Value::to_string).collect();
                doc.text.push_str(&format!(", such as {}{of}", values.join(", ")));
            }
            if let Some(Value::String(comment)) = words("comment") {
                doc.text.push_str(&format!(": {comment}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::names_in;

    #[test]
    fn names_and_quoted_words_of_a_question_are_looked_up() {
        assert_eq!(
            names_in("How many zones does South Africa have, and \"summer time\" in Lisbon?"),
            ["summer time", "South Africa", "Lisbon"]
        );
        assert!(names_in("What is the total?").is_empty());
    }
}
