//! The report of an agent to the star, and how it becomes a part of the state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    AgentError, AgentEvent, AgentResult, Artifact, Assignment, Citation, ErrorKind, Finding,
    GraphState, GraphUpdate, Instruction, Message, ReflectionVerdict, Result, ResultStatus, Source,
    Sources, Spent, Table, ToolUse, is_built_in, sanitised::sanitised, seen,
};
use perihelion_engine::clock;
use perihelion_engine::graph::{Context, NodeOutput};
use perihelion_settings::metrics::{self, Timer};

/// Rows that a result contains; the rows of a larger table are in an artifact.
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

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The newest finding, also when the work failed after it.
    pub finding: Finding,
    pub error: Option<AgentError>,
    pub reflection: ReflectionVerdict,
    /// Rounds of work, each judged once.
    pub attempts: u32,
    pub calls: Vec<CallRecord>,
    pub artifacts: BTreeMap<String, Artifact>,
    pub tainted_by: Sources,
    pub instructions: Vec<Instruction>,
    pub spent: Spent,
}

/// Runs an agent's node on an assignment, and makes an update of the state from its report.
///
/// `server` is the name of the agent's server; empty for an agent without one, whose calls name their servers.
pub(super) async fn reported(
    ctx: &Context<GraphState>,
    agent: &str,
    server: &str,
    assignment: &Assignment,
    work: impl Future<Output = Result<Report>>,
) -> Result<NodeOutput<GraphState>> {
    let timer = Timer::start();
    let began = clock::monotonic();
    let report = work.await?;
    let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let latency_ms = ctx.observe_unless(seen::LATENCY, &0, &took).await?;
    let not_mine = report.is_handed_back();
    if !ctx.port().is_replay() {
        let class = if not_mine { "not_mine" } else { "agent_error" };
        metrics::agent_worked(timer, agent, report.error.as_ref().map(|_| class));
    }
    AgentEvent::AgentResult {
        agent: agent.to_owned(),
        reflection: report.reflection.as_str().to_owned(),
        error: report.error.as_ref().map(ToString::to_string),
        not_mine,
        usage: report.spent.usage,
    }
    .publish(ctx);
    Ok(NodeOutput::update(report.into_update(ctx, (agent, server), assignment, latency_ms)))
}

impl Report {
    pub fn is_handed_back(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind == ErrorKind::PlanningDeclined)
    }

    /// Makes the report an update of the state: result, message, citations, artifacts, cost.
    fn into_update(
        mut self,
        ctx: &Context<GraphState>,
        (agent, server): (&str, &str),
        assignment: &Assignment,
        latency_ms: u64,
    ) -> GraphUpdate {
        let state = ctx.state();
        self.error = self.error.map(sanitised);
        let turn = state.turn;
        // Results of one step are appended in the order of its tasks.
        let number = state.results_of_turn().count() + ctx.place().task as usize + 1;
        let citations = match self.error {
            None => self.citations(number, turn, agent),
            Some(_) => Vec::new(),
        };
        let not_mine = self.is_handed_back();
        let tabular = self.finding.table.take();
        let tabular = tabular.map(|table| self.bounded(table, agent, &assignment.id));
        let uses = self.calls.iter().map(|call| ToolUse {
            tool: match call.tool.as_str() {
                tool if is_built_in(tool) || server.is_empty() => tool.to_owned(),
                tool => format!("{server}.{tool}"),
            },
            arguments: call.arguments.clone(),
            is_error: call.is_error,
        });
        let content = match &self.error {
            None => self.finding.output.clone(),
            Some(error) => format!("failed: {error}"),
        };
        let message = Message {
            name: Some(agent.to_owned()),
            tainted_by: self.tainted_by.clone(),
            ..Message::new((turn, ctx.place().step, &assignment.id), "assistant", content)
        };
        let result = AgentResult {
            id: assignment.id.clone(),
            agent: agent.to_owned(),
            task: assignment.task.clone(),
            status: match self.error {
                None => ResultStatus::Success,
                Some(_) => ResultStatus::Failed,
            },
            tabular,
            chart: self.finding.chart,
            confidence: self.finding.confidence,
            sources: self.finding.sources,
            citations_removed: self.finding.citations_removed,
            not_mine,
            output: self.finding.output,
            error: self.error,
            reflection: self.reflection.as_str().to_owned(),
            attempts: self.attempts,
            tools: uses.collect(),
            usage: self.spent.usage,
            latency_ms,
            turn,
            instructions: self.instructions,
            tainted_by: self.tainted_by,
        };
        GraphUpdate::new()
            .results(vec![result])
            .messages([message].into_iter().collect())
            .citations(citations)
            .global_state(self.artifacts)
            .spent(self.spent)
    }

    /// Returns the sources of the work's facts: those that the agent names, or each of its successful calls once, or
    /// the agent.
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
        let gave = |call: &&CallRecord| !call.is_error && !is_built_in(&call.source);
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
    fn bounded(&mut self, table: Table, agent: &str, task: &str) -> Table {
        let content = json!({ "columns": table.columns, "rows": table.rows }).to_string();
        if table.rows.len() <= ROWS && content.len() <= TABLE_BYTES {
            return table;
        }
        let key = format!("{task}/table");
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
        let artifact = Artifact::of_text(agent, preview.to_string(), content, &self.tainted_by);
        self.artifacts.insert(key.clone(), artifact);
        Table { rows, artifact: Some(key), ..table }
    }
}
