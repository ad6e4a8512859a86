//! The plain kind of agent: a model in a loop with its server's tools, from task to judged result (S1.06, S1.07).

use async_trait::async_trait;
use serde_json::json;

use crate::reflection::{Attempted, Judged, judge, rejected};
use crate::{
    AgentError, CallRecord, ErrorKind, Finding, Job, Kind, KindCard, ReflectionVerdict, Report,
    Result, ShownSkill, Spent, TOOLS, Work, approval, assignment, breaker,
    caller::{Caller, ToolReply},
    is_built_in,
    model::RecordedModel,
    pipeline::StageError,
    question, remaining, seen, taint,
    toolbox::{Prepared, Toolbox},
    window,
};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use perihelion_llm::{
    self as llm, ChatMessage, ChatModel, ChatRequest, ChatResponse, Role, ToolCall,
};

const SHORTER: &str = "Your last answer was longer than the output limit and was discarded. Answer again, much shorter.";

/// Characters of a call's result that are returned if the work was cut off.
const PARTIAL_CHARS: usize = 2_000;

/// Works on tasks with the tools of a server alone.
#[derive(Debug, Default)]
pub struct ToolLoop;

static CARD: KindCard = KindCard {
    name: TOOLS,
    about: "a model that calls the server's tools until it can answer",
    tool_roles: Vec::new(),
    profiles: Vec::new(),
    natural_for: Vec::new(),
    templates: Vec::new(),
};

fn failed(kind: ErrorKind, message: impl Into<String>) -> StageError {
    AgentError::new(kind, message).into()
}

#[async_trait]
impl Kind for ToolLoop {
    fn card(&self) -> &KindCard {
        &CARD
    }

    async fn work(&self, job: Job) -> Result<Report> {
        let Job { ctx, assignment, .. } = &job;
        let model = job.model(ctx).remembering(ctx.state());
        // Small models ask at random.
        let asks = assignment.is_direct()
            && !ctx.observe_unless(seen::SHAPE, &false, &job.star.shapes.is_compact()).await?;
        let mut tools = Toolbox::new(Caller { ctx, job: &job, beside: None }, asks);
        tools.log.tainted_by.extend(taint::of_opening(ctx.state(), assignment));
        let mut report = Report::default();
        let skills = similar(&job).await?;
        match (Loop { job: &job, model: &model, skills: &skills })
            .work(&mut tools, &mut report)
            .await
        {
            Ok(()) => {}
            Err(StageError::Stop(stop)) => return Err(stop),
            Err(StageError::Failed(error)) => {
                if error.is_cut_off() && report.finding.output.is_empty() {
                    report.finding.output = so_far(&tools.log.calls);
                }
                report.error = Some(error);
            }
        }
        report.instructions = tools.instructions;
        let log = tools.log;
        report.finding.table = log.table;
        report.spent = model.spent();
        report.calls = log.calls;
        report.artifacts = log.artifacts.made;
        report.tainted_by = log.tainted_by;
        learn(&job, &report, &skills);
        Ok(report)
    }
}

/// Lists the results of calls before the work on a task was cut off; empty without results.
fn so_far(calls: &[CallRecord]) -> String {
    let good = calls.iter().filter(|call| !call.is_error && !is_built_in(&call.tool));
    let lines: Vec<String> = good
        .map(|call| format!("{}: {}", call.source, window::clip(call.output.trim(), PARTIAL_CHARS)))
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("What was found before the work was cut off:\n{}", lines.join("\n"))
    }
}

/// Returns how tasks like this one were solved before; noted, so that work that is done again sees the same.
async fn similar(job: &Job) -> Result<Vec<ShownSkill>> {
    let found = match &job.star.experience {
        Some(experience) if !job.ctx.port().is_replay() => {
            let tenant = &job.ctx.place().tenant;
            experience.skills(tenant, &job.agent, &job.server, &job.assignment.task).await
        }
        _ => Vec::new(),
    };
    job.ctx.observe_unless(seen::SKILLS, &Vec::new(), &found).await
}

/// Learns from work that was approved unchanged and without open-world content, and from failures of skills.
fn learn(job: &Job, report: &Report, skills: &[ShownSkill]) {
    let Some(experience) = &job.star.experience else { return };
    if job.ctx.port().is_replay() || report.is_handed_back() {
        return;
    }
    let succeeded = report.error.is_none();
    let place = job.ctx.place();
    let source = format!("{}/{}/{}", place.thread, place.step, job.assignment.id);
    let work = Work {
        tenant: &place.tenant,
        agent: &job.agent,
        server: &job.server,
        task: &job.assignment.task,
        source: &source,
        calls: &report.calls,
        is_exemplary: succeeded
            && report.reflection == ReflectionVerdict::Approved
            && report.tainted_by.is_empty()
            && report.instructions.is_empty(),
        succeeded,
        skills,
    };
    experience.worked(work);
}

struct Loop<'a> {
    job: &'a Job,
    model: &'a RecordedModel<'a>,
    skills: &'a [ShownSkill],
}

impl Loop<'_> {
    /// Acts and is judged, round by round, until the output is approved or the bound is reached.
    async fn work(&self, tools: &mut Toolbox<'_>, report: &mut Report) -> Result<(), StageError> {
        let Job { ctx, star, .. } = self.job;
        let mut messages = self.opening(tools)?;
        loop {
            report.attempts += 1;
            report.finding = Finding::text(self.act(&mut messages, tools).await?);
            let attempt = Attempted {
                ctx,
                job: self.job,
                calls: &tools.log.calls,
                instructions: &tools.instructions,
                output: &report.finding.output,
                number: report.attempts,
                spent: Spent::default(),
            };
            let Judged { verdict, text } = judge(self.model, attempt).await?;
            report.reflection = verdict;
            match verdict {
                ReflectionVerdict::Approved | ReflectionVerdict::Unverified => return Ok(()),
                ReflectionVerdict::Fixed => {
                    report.finding.output = text;
                    return Ok(());
                }
                ReflectionVerdict::Rejected => {
                    if report.attempts > self.job.limits().max_reflections {
                        return Err(rejected(report.attempts, &text).into());
                    }
                    messages.push(ChatMessage::assistant(report.finding.output.clone()));
                    let prompt = star.prompts.render("feedback", json!({ "feedback": text }));
                    messages.push(ChatMessage::user(prompt.map_err(window::prompt_failed)?));
                }
            }
        }
    }

    /// Lets the model call tools until it answers, within the bound on calls.
    async fn act(
        &self,
        messages: &mut Vec<ChatMessage>,
        tools: &mut Toolbox<'_>,
    ) -> Result<String, StageError> {
        let limits = &self.job.star.limits;
        let Job { ctx, .. } = self.job;
        let limit = remaining::tool_calls(ctx.state(), limits, ctx.place(), 1);
        let mut is_shortened = false;
        loop {
            if let Some(spent) =
                breaker::overspent(self.job.ctx.state(), limits, self.model.spent())
            {
                return Err(failed(ErrorKind::Budget, spent.reason));
            }
            let is_last = tools.log.calls.len() >= limit;
            let response = self.ask(messages, tools, is_last).await?;
            if let Some(reason) = tools.handed_back(&response.tool_calls) {
                return Err(failed(ErrorKind::PlanningDeclined, format!("not mine: {reason}")));
            }
            if response.is_too_long() && !is_shortened {
                // Without the part that there is: it would be repeated, and cut again.
                is_shortened = true;
                messages.push(ChatMessage::user(SHORTER));
                continue;
            }
            if response.tool_calls.is_empty() {
                return match response.into_text() {
                    Err(llm::Error::Empty) => Err(failed(
                        ErrorKind::Model,
                        "the model answered neither with text nor with a tool call",
                    )),
                    text => Ok(text?),
                };
            }
            if is_last {
                return Err(failed(
                    ErrorKind::Budget,
                    format!("the limit of {limit} tool calls for one task was reached"),
                ));
            }
            let tool_calls = response.tool_calls.clone();
            messages.push(ChatMessage { tool_calls, ..ChatMessage::assistant(response.content) });
            let left = limit.saturating_sub(tools.log.calls.len());
            let called = &response.tool_calls[..left.min(response.tool_calls.len())];
            if let Some(skipped) = tools.ask_people(called).await? {
                return Err(approval::not_waited(&skipped).into());
            }
            self.take_in(tools).await?;
            let replies = tools.call_all(&response.tool_calls, limit).await?;
            for (call, replies) in response.tool_calls.iter().zip(replies) {
                messages.push(ChatMessage::tool(&call.id, replies));
            }
        }
    }

    /// Classifies the instructions that came with approvals relative to the task.
    async fn take_in(&self, tools: &mut Toolbox<'_>) -> Result<()> {
        let Job { ctx, star, agent, assignment, .. } = self.job;
        for (place, text) in tools.words_of_approvers() {
            let task = assignment::effective(&assignment.described(), &tools.instructions);
            let wanted = approval::classify(self.model, (ctx, star), agent, &task, text).await?;
            tools.take_in(place, wanted);
        }
        Ok(())
    }

    async fn ask(
        &self,
        messages: &[ChatMessage],
        tools: &Toolbox<'_>,
        without_tools: bool,
    ) -> Result<ChatResponse, StageError> {
        let thread = self.job.star.thread(self.job.ctx.place());
        let request = ChatRequest {
            tools: if without_tools { Vec::new() } else { tools.specs() },
            ..ChatRequest::new(Role::Agent, thread, messages.to_vec()).agent(&self.job.agent)
        };
        Ok(self.model.chat(&request, None).await?)
    }

    /// Builds the window: the task, upstream outputs, artifact keys, the last few messages.
    fn opening(&self, tools: &Toolbox<'_>) -> Result<Vec<ChatMessage>> {
        let Job { ctx, star, agent, server, assignment, .. } = self.job;
        let state = ctx.state();
        let names: Vec<String> = tools.specs().into_iter().map(|tool| tool.name).collect();
        let prompt = json!({
            "agent": agent,
            "server": server.name,
            "description": server.description,
            "tools": names,
            "has_more_tools": tools.search.is_some(),
            "task": assignment.described(),
            "wishes": state.preferences.system_prompt,
            "context": window::context(state),
            "artifacts": window::artifacts(state),
            "can_hand_back": !assignment.is_direct(),
            "can_ask": tools.asks,
            "recent_messages": window::recent_beside(state, assignment),
            "dependency_outputs": assignment.dependency_outputs,
            "skills": self.skills,
        });
        star.prompts.messages("agent", prompt).map_err(window::prompt_failed)
    }
}

impl Toolbox<'_> {
    /// Performs the calls of an answer, at most `limit` of the task, and returns the model's text for each.
    ///
    /// Adjacent read-only and repeatable calls run concurrently, up to the server's limit. A call that changes something
    /// waits for those before it, and those after it wait for it. They begin, are recorded and are shown to the model in
    /// the order of the answer, whichever ends first.
    pub(super) async fn call_all(
        &mut self,
        calls: &[ToolCall],
        limit: usize,
    ) -> Result<Vec<String>> {
        let mut replies = Vec::with_capacity(calls.len());
        while replies.len() < calls.len() {
            let left = limit.saturating_sub(self.log.calls.len());
            if left == 0 {
                replies.push(format!(
                    "not called: the limit of {limit} tool calls was reached; answer with what you have"
                ));
                continue;
            }
            let group = self.group(calls, replies.len(), left);
            for (prepared, reply) in self.perform(group).await? {
                replies.push(self.note(prepared, reply)?);
            }
        }
        Ok(replies)
    }

    /// Prepares the calls from `place` on that may be in flight together, `left` at most: at least one.
    fn group<'c>(&mut self, calls: &'c [ToolCall], place: usize, left: usize) -> Vec<Prepared<'c>> {
        let mut group = Vec::new();
        for (place, call) in calls.iter().enumerate().skip(place).take(left) {
            // Equal calls are counted, and only their order distinguishes their records.
            let before = &calls[place - group.len()..place];
            let is_same =
                |other: &ToolCall| other.name == call.name && other.arguments == call.arguments;
            let may_join = self.commutes(call) && !before.iter().any(is_same);
            if !group.is_empty() && !may_join {
                break;
            }
            group.push(self.prepare(place, call));
            if !may_join {
                break;
            }
        }
        group
    }

    /// Performs a group of calls; all of them end, even if one of them waits for a person.
    async fn perform<'c>(
        &mut self,
        mut group: Vec<Prepared<'c>>,
    ) -> Result<Vec<(Prepared<'c>, ToolReply)>> {
        if group.len() == 1
            && let Some(alone) = group.pop()
        {
            let reply = self.reply(&alone).await?;
            return Ok(vec![(alone, reply)]);
        }
        let at_once = self.at_once();
        let mut sent: Vec<BoxFuture<'_, Result<ToolReply>>> = Vec::new();
        for prepared in &group {
            sent.push(Box::pin(self.send(prepared)));
        }
        let replies: Vec<_> = stream::iter(sent).buffered(at_once).collect().await;
        let replies = question::all(replies)?;
        Ok(group.into_iter().zip(replies).collect())
    }
}
