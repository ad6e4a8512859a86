//! An agent's tools: checked, gated, called once, and their results kept in bounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::caller::{CallLog, Caller};
use crate::tool_names::{self, ASK_USER, FIND_TOOL, NOT_MINE, READ_ARTIFACT, ToolNames};
use crate::window::{clip, prompt_failed};
use crate::{
    CallRecord, Instruction, InstructionKind, Job, Result, ToolReply,
    addresses::Shown,
    approval::Decision,
    artifacts::Artifacts,
    directory::ToolSearch,
    is_built_in,
    question::{self, Clarification},
};
use perihelion_llm::{ToolCall, ToolSpec};
use perihelion_mcp::{CallPolicy, ToolDefinition};

/// Characters of the reason for which a task is handed back.
const REASON_CHARS: usize = 1_000;

/// Times that the same call with the same arguments is made for one task.
const SAME_CALLS: usize = 3;

pub(super) struct Prepared<'c> {
    /// Its place in the model's answer.
    place: usize,
    call: &'c ToolCall,
    /// The server's tool, with its present policy; `None` for the agent's own tools and unknown ones.
    tool: Option<ToolDefinition>,
    name: String,
    full_name: String,
    decision: Option<Decision>,
    /// It was made too often already.
    is_refused: bool,
}

/// The tools of one agent while it works on one task.
pub(super) struct Toolbox<'a> {
    caller: Caller<'a>,
    names: ToolNames,
    /// Present if there are too many tools to show all.
    pub(super) search: Option<ToolSearch>,
    pub asks: bool,
    pub log: CallLog,
    /// The texts of people and tools, from which addresses are known.
    shown: Shown<'a>,
    /// The decisions of people on the calls of the last answer, by their positions in it.
    decisions: BTreeMap<usize, Decision>,
    /// The policies of the tools of that answer, by their names: those when the agent began, or stricter ones.
    call_policies: BTreeMap<String, CallPolicy>,
    /// Answers of the model that called tools.
    answers: usize,
    pub instructions: Vec<Instruction>,
    /// The instructions for the last answer, by the positions of their calls.
    newest: BTreeMap<usize, Instruction>,
}

impl<'a> Toolbox<'a> {
    pub(super) fn new(caller: Caller<'a>, asks: bool) -> Self {
        let Job { ctx, server, assignment, .. } = caller.job;
        let state = ctx.state();
        let limits = caller.job.limits();
        let definitions = server.open_world.then(|| server.name.clone());
        Self {
            names: ToolNames::new(&server.tools),
            search: ToolSearch::new(&server.tools, limits.agent_tools, &assignment.task),
            asks,
            caller,
            log: CallLog {
                calls: Vec::new(),
                artifacts: Artifacts::new(state.global_state.clone(), limits.result_bytes),
                tainted_by: definitions.into_iter().collect(),
                table: None,
            },
            shown: Shown::at_opening(state),
            decisions: BTreeMap::new(),
            call_policies: BTreeMap::new(),
            answers: 0,
            instructions: Vec::new(),
            newest: BTreeMap::new(),
        }
    }

    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let spec = |(tool, name): (&ToolDefinition, &str)| ToolSpec {
            name: name.to_owned(),
            description: tool.description.clone(),
            parameters: tool_names::shown(&tool.input_schema),
        };
        let all = self.caller.job.server.tools.iter().zip(self.names.iter()).enumerate();
        let shown = all.filter(|(number, _)| self.shows(*number)).map(|(_, tool)| spec(tool));
        let search =
            self.search.as_ref().map(|_| tool_names::find_tool(self.caller.job.server.tools.len()));
        let back = (!self.caller.job.assignment.is_direct()).then(tool_names::not_mine);
        let ask = self.asks.then(tool_names::ask_user);
        shown.chain(search).chain(self.log.artifacts.spec()).chain(back).chain(ask).collect()
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
    /// The model wrote all of them before it saw any of their results. Returns the first tool that would need an
    /// approval if the request does not wait for people.
    pub(super) async fn ask_people(&mut self, calls: &[ToolCall]) -> Result<Option<String>> {
        let server = &self.caller.job.server;
        self.answers += 1;
        let called = calls.iter().filter_map(|call| self.names.find(&call.name, &server.tools));
        self.call_policies = self.caller.call_policies(called, self.answers).await?;
        let tools: Vec<_> = calls.iter().map(|call| self.find_tool(&call.name)).collect();
        let mut places = Vec::new();
        let mut wanted = Vec::new();
        for (place, (call, tool)) in calls.iter().zip(&tools).enumerate() {
            let Some(tool) = tool else { continue };
            if call.arguments.is_object() && !self.is_repeated(&tool.name, &call.arguments) {
                places.push(place);
                wanted.push(self.caller.pending(&self.shown, tool, &call.arguments).await?);
            }
        }
        let decisions = self.caller.ask_people(&wanted, &self.log.tainted_by, self.answers).await?;
        let decided = places.into_iter().zip(decisions);
        self.decisions = decided.filter_map(|(place, one)| Some((place, one?))).collect();
        self.newest.clear();
        let mut skipped = self.decisions.iter().filter(|(_, one)| **one == Decision::Skipped);
        let skipped = skipped.next().and_then(|(place, _)| tools.get(*place)?.as_ref());
        Ok(skipped.map(|tool| self.caller.full_name(tool)))
    }

    /// Returns the instructions that came with approvals, by the positions of the calls.
    pub(super) fn words_of_approvers(&self) -> Vec<(usize, String)> {
        let words = self.decisions.iter();
        words.filter_map(|(place, one)| Some((*place, one.instruction()?.clone()))).collect()
    }

    /// Keeps an instruction, which the agent sees with its call's result.
    pub(super) fn take_in(&mut self, place: usize, instruction: Instruction) {
        self.shown.add(&instruction.text);
        self.instructions.push(instruction.clone());
        self.newest.insert(place, instruction);
    }

    fn find_tool(&self, name: &str) -> Option<ToolDefinition> {
        let tool = self.names.find(name, &self.caller.job.server.tools)?;
        Some(tool.under(
            self.call_policies.get(&tool.name).copied().unwrap_or_else(|| tool.call_policy()),
        ))
    }

    /// Returns whether a call can run concurrently with other calls: it only reads, or is repeatable, on the server
    /// itself.
    ///
    /// A server's claim that its tool only reads is enough here: only the order depends on it.
    pub(super) fn commutes(&self, call: &ToolCall) -> bool {
        self.find_tool(&call.name).is_some_and(|tool| {
            tool.read_only || tool.repeatable || tool.annotations.read_only == Some(true)
        })
    }

    /// Returns how many calls the server takes at a time.
    pub(super) fn at_once(&self) -> usize {
        self.caller.job.star.tools.at_once(&self.caller.job.server.name).max(1)
    }

    pub(super) fn prepare<'c>(&mut self, place: usize, call: &'c ToolCall) -> Prepared<'c> {
        let tool = self.find_tool(&call.name);
        let name = tool.as_ref().map_or_else(|| call.name.clone(), |tool| tool.name.clone());
        let full_name = match &tool {
            None if is_built_in(&call.name) => call.name.clone(),
            _ => format!("{}.{name}", self.caller.job.server.name),
        };
        let is_refused = self.is_repeated(&name, &call.arguments);
        let decision = self.decisions.remove(&place);
        Prepared { place, call, tool, name, full_name, decision, is_refused }
    }

    /// Names a call of the last answer, the same whenever the work is done again.
    fn call_id(&self, place: usize) -> String {
        format!("{}/{}.{place}", self.caller.job.assignment.id, self.answers)
    }

    /// Sends a call of a tool of the server; a failure is a reply.
    pub(super) async fn send(&self, prepared: &Prepared<'_>) -> Result<ToolReply> {
        let Prepared { place, call, tool, decision, is_refused, .. } = prepared;
        if *is_refused {
            return Ok(ToolReply::problem(format!(
                "not called: the same call was made {SAME_CALLS} times for this task and will not be \
                 repeated; continue with what it gave"
            )));
        }
        match tool {
            Some(tool) => {
                let id = self.call_id(*place);
                self.caller.perform(tool, &id, &call.arguments, decision.clone()).await
            }
            None => Ok(ToolReply::problem(self.unknown(&call.name))),
        }
    }

    /// Performs a call of whatever tool there is, the agent's own ones included; a failure is a reply.
    pub(super) async fn reply(&mut self, prepared: &Prepared<'_>) -> Result<ToolReply> {
        let call = prepared.call;
        if prepared.is_refused || prepared.tool.is_some() {
            return self.send(prepared).await;
        }
        Ok(match call.name.as_str() {
            READ_ARTIFACT => match self.log.artifacts.read(self.caller.ctx, &call.arguments).await?
            {
                Ok(piece) => {
                    self.log.tainted_by.extend(piece.tainted_by);
                    ToolReply {
                        source: Some(piece.source),
                        ..ToolReply::of_text(piece.text, false)
                    }
                }
                Err(problem) => ToolReply::problem(problem),
            },
            FIND_TOOL if self.search.is_some() => self.find(&call.arguments),
            NOT_MINE => ToolReply::problem(format!("{NOT_MINE} needs a `reason` in words")),
            ASK_USER if self.asks => self.ask_user(&call.arguments).await?,
            _ => ToolReply::problem(self.unknown(&call.name)),
        })
    }

    pub(super) fn note(&mut self, prepared: Prepared<'_>, reply: ToolReply) -> Result<String> {
        let Prepared { place, call, tool, name, full_name, decision, .. } = prepared;
        let edited = decision.as_ref().and_then(Decision::edited).cloned().map(Value::Object);
        let is_open = tool.is_some_and(|tool| tool.open_world);
        let call_id = self.call_id(place);
        self.log.note(&self.caller, (&full_name, call_id), &reply, is_open);
        let ToolReply { text, source, is_error, .. } = reply;
        self.shown.add(&text);
        let wanted = self.newest.remove(&place);
        // A piece of an artifact is in bounds already and must not become one itself.
        let output = match source {
            Some(_) => text,
            None => {
                let key = format!("{}/{}", self.caller.job.assignment.id, self.log.calls.len() + 1);
                self.log.artifacts.bounded(key, &full_name, text, &self.log.tainted_by)
            }
        };
        let shown = json!({
            "tool": call.name, "output": output, "is_error": is_error,
            "instruction": wanted.as_ref().map(|wanted| &wanted.text),
            "overrides": wanted.as_ref().is_some_and(|wanted| wanted.kind == InstructionKind::Override),
            "edited": edited.as_ref().map(Value::to_string),
        });
        let prompts = &self.caller.job.star.prompts;
        let shown = prompts.render("tool_result", shown).map_err(prompt_failed)?;
        self.log.calls.push(CallRecord {
            tool: name,
            arguments: edited.unwrap_or_else(|| call.arguments.clone()),
            output,
            is_error,
            source: source.unwrap_or(full_name),
        });
        Ok(shown)
    }

    async fn ask_user(&self, arguments: &Value) -> Result<ToolReply> {
        let asked = self.log.calls.iter().filter(|call| call.tool == ASK_USER).count();
        let question = arguments["question"].as_str().unwrap_or_default().trim();
        if question.is_empty() || asked >= question::MOST as usize {
            let most = question::MOST;
            let problem =
                format!("{ASK_USER} needs a `question` in words, and takes {most} at most");
            return Ok(ToolReply::problem(problem));
        }
        let Caller { ctx, job, .. } = self.caller;
        let agent = Some(job.agent.clone());
        let asked = Clarification { agent, ..Clarification::new(question) };
        let answer = question::clarify(ctx, asked).await?;
        Ok(ToolReply::of_text(answer, false))
    }

    fn find(&mut self, arguments: &Value) -> ToolReply {
        let found = self.search.as_mut().map_or_else(
            || Err("all tools are shown".to_owned()),
            |search| search.find(arguments, &self.caller.job.server.tools, &self.names),
        );
        found.map_or_else(ToolReply::problem, |text| ToolReply::of_text(text, false))
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

    fn is_repeated(&self, name: &str, arguments: &Value) -> bool {
        let same = |call: &&CallRecord| call.tool == name && call.arguments == *arguments;
        self.log.calls.iter().filter(same).count() >= SAME_CALLS
    }
}
