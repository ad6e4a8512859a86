//! An agent's tools: checked, gated, called once, and their results kept in bounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::approval::{self, Decision, Gated};
use super::artifacts::Artifacts;
use super::built_in::{self, FIND_TOOL, NOT_MINE, READ_ARTIFACT, is_built_in};
use super::exchange::Exchange;
use super::seen;
use super::star::StarParts;
use super::state::{Citation, GraphState};
use super::taint::Sources;
use super::tool_names::ToolNames;
use super::tool_search::ToolSearch;
use super::window::{clip, prompt_failed};
use crate::graph::{Context, NodeError};
use crate::llm::{ToolCall, ToolSpec};
use crate::mcp::{self, Gate, ServerInfo, ToolDefinition};

/// Characters of the reason for which a task is handed back.
const REASON_CHARS: usize = 1_000;

/// Times that the same call with the same arguments is made for one task.
const SAME_CALLS: usize = 3;

/// One call as shown to the reflector and kept with the result.
#[derive(Clone, Debug)]
pub(super) struct CallRecord {
    /// The tool's own name.
    pub tool: String,
    pub arguments: Value,
    pub output: String,
    pub is_error: bool,
    /// `server.tool` whose data it gave.
    pub source: String,
}

/// What a call gave; the error is told to the model as well.
pub(super) struct Told {
    pub text: String,
    pub source: Option<String>,
    pub is_error: bool,
    /// A word for the agent from the person who approved the call.
    pub instruction: Option<String>,
}

impl Told {
    /// Tells what a tool said.
    pub(super) fn said(text: String, is_error: bool) -> Self {
        Self { text, source: None, is_error, instruction: None }
    }

    pub(super) fn problem(text: String) -> Self {
        Self::said(text, true)
    }
}

/// The tools of one agent while it works on one task.
pub(super) struct Toolbox<'a> {
    ctx: &'a Context<GraphState>,
    parts: &'a StarParts,
    server: &'a ServerInfo,
    agent: &'a str,
    task: &'a str,
    names: ToolNames,
    /// Where there are too many tools to be shown all.
    search: Option<ToolSearch>,
    pub calls: Vec<CallRecord>,
    pub artifacts: Artifacts<'a>,
    /// What of the open world the agent was shown so far.
    pub tainted_by: Sources,
    /// What people decided of the calls of the model's last answer, by their places in it.
    decisions: BTreeMap<usize, Decision>,
    /// What surrounds the tools of that answer, by their names: what did when the agent began, or stricter.
    gates: BTreeMap<String, Gate>,
    /// Answers of the model that called tools.
    answers: usize,
}

impl<'a> Toolbox<'a> {
    pub(super) fn new(
        ctx: &'a Context<GraphState>,
        parts: &'a StarParts,
        server: &'a ServerInfo,
        agent: &'a str,
        task: &'a str,
        about: &str,
    ) -> Self {
        let names = ToolNames::new(&server.tools);
        let search = ToolSearch::new(&server.tools, parts.limits.agent_tools, about);
        let artifacts = Artifacts::new(ctx.state(), parts.limits.result_bytes);
        let definitions = server.open_world.then(|| server.name.clone());
        Self {
            ctx,
            parts,
            server,
            agent,
            task,
            names,
            search,
            calls: Vec::new(),
            artifacts,
            tainted_by: definitions.into_iter().collect(),
            decisions: BTreeMap::new(),
            gates: BTreeMap::new(),
            answers: 0,
        }
    }

    /// Returns the tools as the model is shown them.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let spec = |(tool, name): (&ToolDefinition, &str)| ToolSpec {
            name: name.to_owned(),
            description: tool.description.clone(),
            parameters: tool.input_schema.clone(),
        };
        let all = self.server.tools.iter().zip(self.names.iter()).enumerate();
        let shown = all.filter(|(number, _)| self.shows(*number)).map(|(_, tool)| spec(tool));
        let search = self.search.as_ref().map(|_| built_in::find_tool(self.server.tools.len()));
        shown.chain(search).chain(self.artifacts.spec()).chain([built_in::not_mine()]).collect()
    }

    /// Tells whether tools are shown that were searched for, beside which there are more.
    pub(super) fn is_searched(&self) -> bool {
        self.search.is_some()
    }

    fn shows(&self, tool: usize) -> bool {
        self.search.as_ref().is_none_or(|search| search.shows(tool))
    }

    /// Returns why the agent hands its task back, if one of the calls does so.
    pub(super) fn handed_back(&self, calls: &[ToolCall]) -> Option<String> {
        let back = calls.iter().filter(|call| call.name == NOT_MINE);
        let mut reasons = back.filter_map(|call| call.arguments["reason"].as_str().map(str::trim));
        Some(clip(reasons.find(|reason| !reason.is_empty())?, REASON_CHARS))
    }

    /// Asks people about all calls of an answer that need their word, before the first call is made.
    ///
    /// The model wrote all of them before it saw any of their results.
    ///
    /// # Errors
    /// [`NodeError`] while a person has to decide, or when the run stops.
    pub(super) async fn ask_people(&mut self, calls: &[ToolCall]) -> Result<(), NodeError> {
        self.look_at_gates(calls).await?;
        let tools: Vec<_> = calls.iter().map(|call| self.find_tool(&call.name)).collect();
        let mut places = Vec::new();
        let mut gated = Vec::new();
        for (place, (call, tool)) in calls.iter().zip(&tools).enumerate() {
            let Some(tool) = tool else { continue };
            let tainted_by = self.taint_of(tool);
            let Value::Object(arguments) = &call.arguments else { continue };
            let needs_word = tool.needs_approval || !tainted_by.is_empty();
            if needs_word
                && mcp::validate_arguments(tool, arguments).is_ok()
                && !self.is_worn_out(&tool.name, &call.arguments)
            {
                let (agent, server) = (self.agent, self.server.name.as_str());
                places.push(place);
                gated.push(Gated { agent, server, tool, arguments, tainted_by });
            }
        }
        let timeout = self.parts.limits.approval_timeout;
        let decisions = approval::decide(self.ctx, timeout, &gated).await?;
        self.decisions = places.into_iter().zip(decisions).collect();
        Ok(())
    }

    /// Finds out what surrounds the tools of an answer's calls by now: an operator may have tightened it since the
    /// agent began. What was loosened holds for those who begin after that.
    async fn look_at_gates(&mut self, calls: &[ToolCall]) -> Result<(), NodeError> {
        let tools = calls.iter().filter_map(|call| self.names.find(&call.name, &self.server.tools));
        let usual: BTreeMap<String, Gate> =
            tools.map(|tool| (tool.name.clone(), tool.gate())).collect();
        let now = usual.iter().map(|(tool, gate)| {
            let present = self.parts.tools.gate(&self.server.name, tool);
            (tool.clone(), present.map_or(*gate, |present| gate.stricter(present)))
        });
        self.answers += 1;
        let name = format!("{} {}", seen::GATES, self.answers);
        self.gates = self.ctx.observe_unless(&name, &usual, &now.collect()).await?;
        Ok(())
    }

    /// Finds a tool under the name that the model was shown, with what surrounds it by now.
    fn find_tool(&self, name: &str) -> Option<ToolDefinition> {
        let tool = self.names.find(name, &self.server.tools)?;
        Some(tool.under(self.gates.get(&tool.name).copied().unwrap_or_else(|| tool.gate())))
    }

    /// Returns what of the open world could be behind a call that changes something.
    fn taint_of(&self, tool: &ToolDefinition) -> Sources {
        let is_free = tool.read_only || tool.approved_in_advance;
        match self.parts.limits.asks_about_taint && !is_free {
            true => self.tainted_by.clone(),
            false => Sources::new(),
        }
    }

    /// Performs a call that the model asked for, the one at a place of its answer, and returns what the model
    /// is told; a failure is told as data.
    ///
    /// # Errors
    /// [`NodeError`] when a person must decide first, or the run stops.
    pub(super) async fn call(
        &mut self,
        place: usize,
        call: &ToolCall,
    ) -> Result<String, NodeError> {
        let decision = self.decisions.remove(&place);
        let (server, tool) = (self.server, self.find_tool(&call.name));
        let tool = tool.as_ref();
        let name = tool.map_or_else(|| call.name.clone(), |tool| tool.name.clone());
        let full_name = match tool {
            None if is_built_in(&call.name) => call.name.clone(),
            _ => format!("{}.{name}", server.name),
        };
        let told = match tool {
            _ if self.is_worn_out(&name, &call.arguments) => Told::problem(format!(
                "not called: the same call was made {SAME_CALLS} times for this task and will not be \
                 repeated; go on with what it gave"
            )),
            Some(tool) => self.perform(tool, &full_name, &call.arguments, decision).await?,
            None if call.name == READ_ARTIFACT => match self.artifacts.read(&call.arguments) {
                Ok(piece) => {
                    self.tainted_by.extend(piece.tainted_by);
                    let source = Some(piece.source);
                    Told { text: piece.text, source, is_error: false, instruction: None }
                }
                Err(problem) => Told::problem(problem),
            },
            None if call.name == FIND_TOOL && self.search.is_some() => self.find(&call.arguments),
            None if call.name == NOT_MINE => {
                Told::problem(format!("{NOT_MINE} needs a `reason` in words"))
            }
            None => Told::problem(self.unknown(&call.name)),
        };
        self.ctx.emit(json!({
            "type": "tool_result", "agent": self.agent, "tool": full_name, "is_error": told.is_error,
            "preview": clip(&told.text, 200),
        }));
        if tool.is_some_and(|tool| tool.open_world) {
            self.tainted_by.insert(full_name.clone());
        }
        let Told { text, source, is_error, instruction } = told;
        // A piece of an artifact is in bounds already and must not become one itself.
        let output = match source {
            Some(_) => text,
            None => {
                let key = format!("{}/{}", self.task, self.calls.len() + 1);
                self.artifacts.bounded(key, &full_name, text, &self.tainted_by)
            }
        };
        let shown = json!({
            "tool": call.name, "output": output, "is_error": is_error, "instruction": instruction,
        });
        let shown = self.parts.prompts.render("tool_result", shown).map_err(prompt_failed)?;
        let (arguments, source) = (call.arguments.clone(), source.unwrap_or(full_name));
        self.calls.push(CallRecord { tool: name, arguments, output, is_error, source });
        Ok(shown)
    }

    /// Searches the server's tools.
    fn find(&mut self, arguments: &Value) -> Told {
        let found = self.search.as_mut().map_or_else(
            || Err("all tools are shown".to_owned()),
            |search| search.find(arguments, &self.server.tools, &self.names),
        );
        found.map_or_else(Told::problem, |text| Told::said(text, false))
    }

    fn unknown(&self, name: &str) -> String {
        let shown = self.names.iter().enumerate().filter(|(number, _)| self.shows(*number));
        let shown: Vec<&str> = shown.map(|(_, name)| name).collect();
        let more = match self.search {
            Some(_) => format!(", and others that {FIND_TOOL} finds"),
            None => String::new(),
        };
        format!("there is no tool named {name}; the tools are: {}{more}", shown.join(", "))
    }

    /// Returns whether a call was made as often as makes sense.
    fn is_worn_out(&self, name: &str, arguments: &Value) -> bool {
        let same = |call: &&CallRecord| call.tool == name && call.arguments == *arguments;
        self.calls.iter().filter(same).count() >= SAME_CALLS
    }

    /// Checks, gates and sends one call.
    async fn perform(
        &self,
        tool: &ToolDefinition,
        full_name: &str,
        arguments: &Value,
        decision: Option<Decision>,
    ) -> Result<Told, NodeError> {
        let Value::Object(arguments) = arguments else {
            return Ok(Told::problem(format!(
                "the arguments of {} are not a JSON object: {arguments}",
                tool.name
            )));
        };
        if let Err(problem) = mcp::validate_arguments(tool, arguments) {
            return Ok(Told::problem(problem));
        }
        let under = match decision {
            Some(Decision::Approved { .. }) => tool.gate().allowed(),
            _ => tool.gate(),
        };
        let instruction = match decision {
            Some(Decision::Denied { reason }) => {
                return Ok(Told::problem(format!("a person denied this call: {reason}")));
            }
            Some(Decision::Approved { instruction }) => instruction,
            // Whatever led here, a gated call without a person's word is not made.
            None if tool.needs_approval => {
                return Ok(Told::problem("not called: nobody approved this call".into()));
            }
            None => None,
        };
        let exchange = Exchange {
            ctx: self.ctx,
            parts: self.parts,
            server: &self.server.name,
            agent: self.agent,
            tool,
            full_name,
            under,
        };
        Ok(Told { instruction, ..exchange.perform(arguments).await? })
    }

    /// Returns where the work's facts come from: the calls that succeeded, each once; the agent where there are none.
    pub(super) fn citations(&self, number: usize, turn: u32) -> Vec<Citation> {
        let agent = || self.agent.to_owned();
        let mut citations: Vec<Citation> = Vec::new();
        let tells = |call: &&CallRecord| !call.is_error && call.source != FIND_TOOL;
        for call in self.calls.iter().filter(tells) {
            let same =
                |one: &Citation| one.source == call.source && one.arguments == call.arguments;
            if !citations.iter().any(same) {
                let (source, arguments) = (call.source.clone(), call.arguments.clone());
                citations.push(Citation { number, agent: agent(), source, arguments, turn });
            }
        }
        if citations.is_empty() {
            let (source, arguments) = (agent(), Value::Null);
            citations.push(Citation { number, agent: agent(), source, arguments, turn });
        }
        citations
    }
}
