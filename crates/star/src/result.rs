//! The output of an agent: the result, its table, its chart, its sources, and its typed error (S2.09, S2.11).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::{FinishReason, Instruction, ReflectionVerdict, Sources};
use perihelion_llm::{self as llm, Usage};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    #[default]
    Success,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    pub tool: String,
    pub arguments: Value,
    pub is_error: bool,
}

/// The result of an agent; missing fields are left out in the state, and null in the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentResult {
    pub id: String,
    pub agent: String,
    pub task: String,
    pub status: ResultStatus,
    /// The output; on failure, the partial one.
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tabular: Option<Table>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    /// From 0 to 1, if the agent judges its own result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Citations of its output without a source, which were removed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub citations_removed: u64,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "error_of_any_version"
    )]
    pub error: Option<AgentError>,
    /// Whether the agent returned the task as one for another agent; it then failed, and the error has the reason.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub not_mine: bool,
    /// `APPROVED`, `FIXED`, `REJECTED`, or `UNVERIFIED` without a verdict.
    pub reflection: String,
    /// Rounds of work, each judged once.
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    pub usage: Usage,
    /// Milliseconds of work, without waiting for people.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub latency_ms: u64,
    pub turn: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
}

impl AgentResult {
    /// Tells whether nothing but the agent's own words supports it.
    pub(super) fn is_unverified(&self) -> bool {
        self.reflection == ReflectionVerdict::Unverified.as_str()
    }

    pub fn error_message(&self) -> Option<&str> {
        self.error.as_ref().map(|error| error.message.as_str())
    }
}

/// A table of a result; the rows of a large one are in an artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// Rows of the whole table.
    pub row_count: u64,
    /// Whether the table is only a part of the requested data.
    #[serde(default)]
    pub truncated: bool,
    /// Key of the artifact with all rows, as `{columns, rows}`; `rows` then has the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}

impl Table {
    pub fn new(columns: Vec<String>, rows: Vec<Vec<Value>>) -> Self {
        Self { row_count: rows.len() as u64, columns, rows, truncated: false, artifact: None }
    }

    /// Makes a table of objects, whose keys are its columns.
    pub fn of_objects(rows: &[&Map<String, Value>]) -> Self {
        let mut columns: Vec<String> = Vec::new();
        for name in rows.iter().flat_map(|row| row.keys()) {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        let cells = rows.iter().map(|row| in_order(row, &columns)).collect();
        Self::new(columns, cells)
    }

    /// Reads a table from a tool's structured result, if it has `columns` and `rows`.
    pub fn read(structured: &Value) -> Option<Self> {
        let names = structured.get("columns")?.as_array()?.iter();
        let columns: Vec<String> = names.map(column_name).collect::<Option<_>>()?;
        let rows = structured.get("rows")?.as_array()?.iter();
        let rows: Vec<Vec<Value>> = rows.map(|row| cells(row, &columns)).collect::<Option<_>>()?;
        let row_count = structured.get("row_count").and_then(Value::as_u64);
        let truncated = structured.get("truncated").and_then(Value::as_bool).unwrap_or_default();
        let row_count = row_count.unwrap_or(rows.len() as u64);
        Some(Self { columns, rows, row_count, truncated, artifact: None })
    }
}

/// A column is its name, or an object with one.
fn column_name(column: &Value) -> Option<String> {
    let name = column.as_str().or_else(|| column.get("name")?.as_str());
    name.map(str::to_owned)
}

/// A row is a list of cells, or an object by column.
fn cells(row: &Value, columns: &[String]) -> Option<Vec<Value>> {
    match row {
        Value::Array(cells) => Some(cells.clone()),
        Value::Object(fields) => Some(in_order(fields, columns)),
        _ => None,
    }
}

fn in_order(fields: &Map<String, Value>, columns: &[String]) -> Vec<Value> {
    columns.iter().map(|name| fields.get(name).cloned().unwrap_or_default()).collect()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    pub vega_lite: Value,
    /// The same, drawn.
    pub svg: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// `server.tool`, or the agent.
    pub source: String,
    /// The document, page, table or address that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Their place in a document that can be opened there.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<QuoteLocation>,
}

/// A place in a document, as its server counts: the characters from `start` to `end` are the quote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuoteLocation {
    pub document: String,
    pub title: String,
    pub start: u64,
    pub end: u64,
    /// From 1, for a source with pages.
    pub page: Option<u64>,
    pub section: Option<String>,
}

/// The kind of an agent's failure (S2.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The agent handed the task back, or its planner found no way.
    PlanningDeclined,
    #[serde(rename = "QueryError")]
    Query,
    #[serde(rename = "HttpError")]
    Http,
    #[serde(rename = "SandboxViolation")]
    Sandbox,
    #[serde(rename = "ConfigurationError")]
    Configuration,
    #[serde(rename = "PathResolutionError")]
    PathResolution,
    #[serde(rename = "ToolError")]
    Tool,
    #[serde(rename = "ModelError")]
    Model,
    Timeout,
    #[serde(rename = "BudgetExceeded")]
    Budget,
    /// A call needs a person's approval, and the request does not wait for one.
    ApprovalRequired,
    /// Reflection rejected every attempt.
    Rejected,
    /// Recorded before errors had kinds, or of a kind that this version does not know.
    #[default]
    #[serde(rename = "AgentError", other)]
    Other,
}

impl ErrorKind {
    /// Reads the kind out of the beginning of a server's message, such as `QueryError: …`.
    pub fn of_message(text: &str) -> Self {
        let word = text.split(':').next().unwrap_or_default();
        match Self::deserialize(json!(word)) {
            Ok(Self::Other) | Err(_) => Self::Tool,
            Ok(kind) => kind,
        }
    }
}

/// Why an agent failed; the message is for people, the details are for diagnosis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    pub message: String,
    pub details: Option<Value>,
}

impl AgentError {
    /// Returns whether the agent failed because its model's answer was cut off.
    pub fn is_truncation(&self) -> bool {
        let reason = self.details.as_ref().and_then(|details| details.get("finish_reason"));
        reason.is_some_and(|reason| reason == FinishReason::Truncated.as_str())
    }

    /// Returns whether the work was cut off, so that its partial findings count.
    pub(super) fn is_cut_off(&self) -> bool {
        matches!(self.kind, ErrorKind::Timeout | ErrorKind::Budget) || self.is_truncation()
    }

    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: None }
    }

    /// Makes the error of a failed tool, whose message can begin with the kind, such as `QueryError: …`.
    pub fn of_message(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(ErrorKind::of_message(&message), message)
    }

    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

impl From<llm::Error> for AgentError {
    fn from(error: llm::Error) -> Self {
        let kind = match error.class() {
            "timeout" => ErrorKind::Timeout,
            "not_configured" | "prompt" => ErrorKind::Configuration,
            _ => ErrorKind::Model,
        };
        let details = matches!(error, llm::Error::Truncated { .. })
            .then(|| json!({ "finish_reason": FinishReason::Truncated }));
        Self { details, ..Self::new(kind, error.to_string()) }
    }
}

/// Reads an error as it is stored; before schema version 3 it was its message alone.
fn error_of_any_version<'de, D: Deserializer<'de>>(
    stored: D,
) -> Result<Option<AgentError>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Typed(AgentError),
        Message(String),
    }
    Ok(Option::<Stored>::deserialize(stored)?.map(|stored| match stored {
        Stored::Typed(error) => error,
        Stored::Message(message) => AgentError::new(ErrorKind::Other, message),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_was_stored_as_its_message_is_read_and_a_new_one_has_a_type() {
        let stored = json!({
            "id": "1.1.t1", "agent": "a", "task": "t", "status": "failed", "output": "", "error": "no such table",
            "reflection": "UNVERIFIED", "attempts": 1, "usage": {}, "turn": 1
        });
        let result: AgentResult = serde_json::from_value(stored).unwrap();
        assert_eq!(result.error, Some(AgentError::new(ErrorKind::Other, "no such table")));
        let error = AgentError::new(ErrorKind::Query, "no such table");
        let wanted = json!({ "type": "QueryError", "message": "no such table", "details": null });
        assert_eq!(json!(error), wanted);
        assert_eq!(serde_json::from_value::<AgentError>(wanted).unwrap(), error);
    }

    #[test]
    fn only_rows_of_either_form_are_read_as_a_table() {
        let lists =
            json!({ "columns": ["a", "b"], "rows": [[1, 2]], "row_count": 7, "truncated": true });
        let table = Table::read(&lists).unwrap();
        assert_eq!((table.row_count, table.truncated), (7, true));
        let objects =
            json!({ "columns": [{ "name": "a" }, { "name": "b" }], "rows": [{ "a": 1, "b": 2 }] });
        assert_eq!(Table::read(&objects).unwrap().rows, table.rows);
        for other in [json!({ "rows": [] }), json!({ "columns": [1], "rows": [] }), json!([])] {
            assert_eq!(Table::read(&other), None, "{other}");
        }
    }
}
