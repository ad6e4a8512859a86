//! What an agent hands back to the star, and how it becomes a part of the state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::assignment::Assignment;
use super::built_in::{FIND_TOOL, is_built_in};
use super::finding::Finding;
use super::instruction::Instruction;
use super::result::{AgentError, AgentResult, ErrorKind, ResultStatus, Source, Table, ToolUse};
use super::sanitised::sanitised;
use super::sources::Sources;
use super::state::{Artifact, Citation, GraphState, GraphUpdate, Message, Spent, message_id};

/// Rows that a result carries itself; those of a larger table stand in an artifact.
const ROWS: usize = 50;

/// Bytes of a table that a result carries itself.
const TABLE_BYTES: usize = 16 * 1024;

/// One call as shown to the reflector and kept with the result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The tool's own name.
    pub tool: String,
    pub arguments: Value,
    pub output: String,
    pub is_error: bool,
    /// `server.tool` whose data it gave.
    pub source: String,
}

/// Returns what a source names beside the call: a reference, the quote, and its place in a document.
fn named_by(source: &Source) -> Value {
    let Source { reference, quote, place, .. } = source;
    if reference.is_none() && quote.is_none() {
        return Value::Null;
    }
    let mut named = json!({ "reference": reference, "quote": quote });
    if let (Value::Object(named), Value::Object(place)) = (&mut named, json!(place)) {
        named.extend(place);
    }
    named
}

/// How the work on one assignment ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The newest finding, also when the work failed after it.
    pub finding: Finding,
    pub error: Option<AgentError>,
    /// `APPROVED`, `FIXED`, `REJECTED`, or `UNVERIFIED` where no verdict could be had.
    pub reflection: String,
    /// Rounds of work, each judged once.
    pub attempts: u32,
    pub calls: Vec<CallRecord>,
    /// Artifacts that the work made.
    pub artifacts: BTreeMap<String, Artifact>,
    /// What of the open world stands behind it.
    pub tainted_by: Sources,
    /// What people who approved its calls wanted besides.
    pub instructions: Vec<Instruction>,
    pub spent: Spent,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            finding: Finding::default(),
            error: None,
            reflection: "UNVERIFIED".to_owned(),
            attempts: 0,
            calls: Vec::new(),
            artifacts: BTreeMap::new(),
            tainted_by: Sources::new(),
            instructions: Vec::new(),
            spent: Spent::default(),
        }
    }
}

/// Whose report it is.
pub(super) struct Reported<'a> {
    pub state: &'a GraphState,
    pub step: u64,
    /// Index of the agent's task in the step: results of one step are appended in that order.
    pub index: u32,
    pub agent: &'a str,
    /// Name of the agent's server; empty where it has none, whose calls say which server they went to.
    pub server: &'a str,
    pub assignment: Assignment,
    pub latency_ms: u64,
}

impl Report {
    /// Returns whether the agent handed the task back as one for another agent.
    pub fn is_handed_back(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind == ErrorKind::PlanningDeclined)
    }

    /// Makes the report an update of the state: result, message, citations, artifacts, cost.
    pub(super) fn into_update(mut self, of: Reported<'_>) -> GraphUpdate {
        self.error = self.error.map(sanitised);
        let turn = of.state.turn;
        let number = of.state.results_of_turn().count() + of.index as usize + 1;
        let citations = match self.error {
            None => self.citations(number, turn, of.agent),
            Some(_) => Vec::new(),
        };
        let tabular = self.finding.table.take().map(|table| self.bounded(table, &of));
        let uses = self.calls.iter().map(|call| ToolUse {
            tool: match call.tool.as_str() {
                tool if is_built_in(tool) || of.server.is_empty() => tool.to_owned(),
                tool => format!("{}.{tool}", of.server),
            },
            arguments: call.arguments.clone(),
            is_error: call.is_error,
        });
        let text = match &self.error {
            None => self.finding.output.clone(),
            Some(error) => format!("failed: {error}"),
        };
        let result = AgentResult {
            id: of.assignment.id.clone(),
            agent: of.agent.to_owned(),
            task: of.assignment.task,
            status: match self.error {
                None => ResultStatus::Success,
                Some(_) => ResultStatus::Failed,
            },
            tabular,
            chart: self.finding.chart,
            confidence: self.finding.confidence,
            sources: self.finding.sources,
            citations_removed: self.finding.citations_removed,
            not_mine: self.error.as_ref().is_some_and(|e| e.kind == ErrorKind::PlanningDeclined),
            output: self.finding.output,
            error: self.error,
            reflection: self.reflection,
            attempts: self.attempts,
            tools: uses.collect(),
            usage: self.spent.usage,
            latency_ms: of.latency_ms,
            turn,
            instructions: self.instructions,
            tainted_by: self.tainted_by.clone(),
        };
        let message = Message {
            id: message_id(turn, of.step, &of.assignment.id),
            role: "assistant".into(),
            name: Some(of.agent.to_owned()),
            content: text,
            tainted_by: self.tainted_by,
            attached: Vec::new(),
            citations_removed: 0,
        };
        GraphUpdate::new()
            .results(vec![result])
            .messages([message].into_iter().collect())
            .citations(citations)
            .global_state(self.artifacts)
            .spent(self.spent)
    }

    /// Returns where the work's facts come from: what the agent names, else the calls that succeeded, each once; the
    /// agent where there are none.
    fn citations(&self, number: usize, turn: u32, agent: &str) -> Vec<Citation> {
        let citation = |source: &str, arguments: Value| Citation {
            number,
            agent: agent.to_owned(),
            source: source.to_owned(),
            arguments,
            turn,
        };
        let mut citations: Vec<Citation> = Vec::new();
        let named = self.finding.sources.iter();
        let named = named.map(|source| citation(&source.source, named_by(source)));
        let gave = |call: &&CallRecord| !call.is_error && call.source != FIND_TOOL;
        let called = self.calls.iter().filter(gave);
        let called = called.map(|call| citation(&call.source, call.arguments.clone()));
        for one in named.chain(called) {
            let same = |it: &Citation| it.source == one.source && it.arguments == one.arguments;
            if !citations.iter().any(same) {
                citations.push(one);
            }
        }
        if citations.is_empty() {
            citations.push(citation(agent, Value::Null));
        }
        citations
    }

    /// Keeps the rows of a large table as an artifact, to which the result refers.
    fn bounded(&mut self, table: Table, of: &Reported<'_>) -> Table {
        let content = json!({ "columns": table.columns, "rows": table.rows }).to_string();
        if table.rows.len() <= ROWS && content.len() <= TABLE_BYTES {
            return table;
        }
        let key = format!("{}/table", of.assignment.id);
        let mut rows = table.rows;
        let mut room = TABLE_BYTES;
        rows.truncate(ROWS);
        rows.retain(|row| {
            let bytes = row.iter().map(|cell| cell.to_string().len()).sum::<usize>();
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        });
        let preview =
            json!({ "columns": table.columns, "rows": rows.iter().take(5).collect::<Vec<_>>() });
        let artifact = Artifact {
            source: of.agent.to_owned(),
            preview: preview.to_string(),
            bytes: content.len(),
            content: content.into(),
            media_type: None,
            tainted_by: self.tainted_by.clone(),
        };
        self.artifacts.insert(key.clone(), artifact);
        Table { rows, artifact: Some(key), ..table }
    }
}
