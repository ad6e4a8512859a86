//! The context of a stage: its state, the task, models, tools, artifacts, people.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::state::{Ask, StageError};
use super::{PipelineState, PipelineUpdate};
use crate::artifacts::{Artifacts, content_of};
use crate::question::{self, Clarification};
use crate::{
    AgentError, AgentEvent, AgentResult, Artifact, Assignment, ErrorKind, Instruction, Job, Result,
    Spent, Table, approval, assignment, caller::CallLog, remaining, window,
};
use perihelion_engine::graph::{Context, State};
use perihelion_llm::{self as llm, ChatModel, ChatRequest};
use perihelion_mcp::{ServerInfo, ToolDefinition};

/// One stage under way.
///
/// Cheap to clone; all clones belong to the same run of the stage.
pub struct Stage<W: State> {
    pub(super) ctx: Context<PipelineState<W>>,
    pub(super) job: Arc<Job>,
    pub(super) left: Arc<Remaining>,
}

impl<W: State> Clone for Stage<W> {
    fn clone(&self) -> Self {
        let job = Arc::clone(&self.job);
        let left = Arc::clone(&self.left);
        Self { ctx: self.ctx.clone(), job, left }
    }
}

/// The effects of a stage on the shared state, besides its own update.
pub(super) struct Remaining {
    pub(super) log: Mutex<CallLog>,
    spent: Mutex<Spent>,
    /// Times that tools were called.
    pub(super) answers: AtomicUsize,
    /// The task with its entities, as instructions left it before the stage began.
    task: String,
    /// The same without entities.
    query: String,
    pub(super) instructions: Mutex<Vec<Instruction>>,
}

/// The remaining bounds of the turn and the task; `None` means unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub tokens: Option<u64>,
    /// Billionths of a US dollar.
    pub nano_usd: Option<u64>,
    pub tool_calls: usize,
}

impl<W: State> Stage<W> {
    pub(super) fn new(ctx: Context<PipelineState<W>>, job: Arc<Job>) -> Self {
        let state = ctx.state();
        let mut known = job.ctx.state().global_state.clone();
        for (key, artifact) in &state.artifacts {
            known.insert_mut(key.clone(), artifact.clone());
        }
        let log = CallLog {
            calls: Vec::new(),
            artifacts: Artifacts::new(known, job.limits().result_bytes),
            tainted_by: state.tainted_by.clone(),
            table: None,
        };
        let instructions: Vec<Instruction> = state.instructions.iter().cloned().collect();
        let left = Remaining {
            log: Mutex::new(log),
            spent: Mutex::default(),
            answers: AtomicUsize::new(0),
            task: assignment::effective(&job.assignment.described(), &instructions),
            query: assignment::effective(&job.assignment.task, &instructions),
            instructions: Mutex::default(),
        };
        Self { ctx, job, left: Arc::new(left) }
    }

    /// Returns the pipeline's state at the start of the stage.
    pub fn state(&self) -> &W {
        &self.ctx.state().work
    }

    /// Returns the task with its subject, as people who approved calls in earlier stages changed it.
    pub fn task(&self) -> &str {
        &self.left.task
    }

    /// Returns the words of the task alone, to search by.
    pub fn query(&self) -> &str {
        &self.left.query
    }

    /// Classifies the instruction that came with an approval relative to the task, and stores it for later stages.
    pub(super) async fn take_in(&self, text: String) -> Result<()> {
        let star = &*self.job.star;
        let model = self.job.model(&self.ctx);
        let known = self.left.instructions.lock().clone();
        let task = assignment::effective(self.task(), &known);
        let agent = &self.job.agent;
        let wanted = approval::classify(&model, (&self.ctx, star), agent, &task, text).await?;
        self.left.instructions.lock().push(wanted);
        *self.left.spent.lock() += model.spent();
        Ok(())
    }

    pub fn assignment(&self) -> &Assignment {
        &self.job.assignment
    }

    /// Returns the table of each upstream output, in the order of the assignment's `dependency_outputs`; complete, if
    /// it is stored completely.
    ///
    /// # Errors
    /// [`StageError::Stop`] if a stored value cannot be read.
    pub async fn upstream_tables(&self) -> Result<Vec<Option<Table>>, StageError> {
        let state = self.job.ctx.state();
        let upstream = self.job.assignment.depends_on.iter().filter_map(|id| state.result_of(id));
        let mut tables = Vec::new();
        for result in upstream {
            tables.push(match &result.tabular {
                Some(table) => Some(self.whole(table).await?),
                None => None,
            });
        }
        Ok(tables)
    }

    async fn whole(&self, table: &Table) -> Result<Table, StageError> {
        let kept = match &table.artifact {
            Some(key) => self.find_artifact(key).await?,
            None => None,
        };
        let read = kept.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        Ok(read.as_ref().and_then(Table::read).unwrap_or_else(|| table.clone()))
    }

    pub fn request(&self) -> &str {
        &self.job.ctx.state().input_request
    }

    /// Returns the context of the request, and the date in several forms; without secrets.
    pub fn context(&self) -> BTreeMap<String, String> {
        self.context_of(false)
    }

    /// Returns the secrets in the context of the request, such as headers with credentials, for
    /// [`call_beside`](Stage::call_beside).
    pub fn secrets(&self) -> BTreeMap<String, String> {
        self.context_of(true)
    }

    fn context_of(&self, secret: bool) -> BTreeMap<String, String> {
        let all = self.job.ctx.state().request_context.iter();
        let wanted = all.filter(|(key, _)| window::is_secret(key) == secret);
        wanted.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Returns the last messages of the conversation, shortened: `{role, name, content}`.
    pub fn recent_messages(&self) -> Value {
        json!(window::recent_beside(self.job.ctx.state(), &self.job.assignment))
    }

    /// Returns the newest result of the same agent in an earlier turn of the thread.
    pub fn previous(&self) -> Option<&AgentResult> {
        let state = self.job.ctx.state();
        state.results.iter().rev().find(|one| one.agent == self.job.agent && one.turn < state.turn)
    }

    /// Returns the number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.ctx.state().attempt.number
    }

    /// Returns why reflection rejected the last attempt, if it did.
    pub fn feedback(&self) -> Option<&str> {
        self.ctx.state().attempt.feedback.as_deref()
    }

    pub fn agent(&self) -> &str {
        &self.job.agent
    }

    pub fn server(&self) -> &ServerInfo {
        &self.job.server
    }

    pub fn budget(&self) -> Budget {
        let state = self.job.ctx.state();
        let limits = self.job.limits();
        let mut spent = state.spent_in_turn();
        spent += self.ctx.state().spent;
        spent += *self.left.spent.lock();
        let attempts = limits.max_reflections.saturating_add(1);
        let place = self.job.ctx.place();
        let most = remaining::tool_calls(state, &self.job.star.limits, place, attempts);
        let made = self.ctx.state().calls.len() + self.left.log.lock().calls.len();
        Budget {
            tokens: limits.max_tokens.map(|most| most.saturating_sub(spent.usage.total())),
            nano_usd: limits.max_nano_usd.map(|most| most.saturating_sub(spent.nano_usd)),
            tool_calls: most.saturating_sub(made),
        }
    }

    /// Returns the variables of the task for prompts, extended or replaced by `more`: `task`, `request`, `context`,
    /// `upstream` and `feedback`.
    pub fn variables(&self, more: Value) -> Value {
        let mut all = json!({
            "task": self.task(),
            "request": self.request(),
            "context": self.context(),
            "upstream": self.assignment().dependency_outputs,
            "feedback": self.feedback(),
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
            all.extend(more);
        }
        all
    }

    /// Asks a model for a JSON answer of type `T`, which is validated, and repaired at most twice.
    ///
    /// # Errors
    /// [`StageError`], to be passed on with `?`; of kind `ModelError` without a valid answer.
    pub async fn ask<T>(&self, ask: Ask) -> Result<T, StageError>
    where
        T: JsonSchema + DeserializeOwned + 'static,
    {
        let request = self.request_of(&ask)?;
        let schema = ask.schema;
        let model = self.job.model(&self.ctx).remembering(self.job.ctx.state());
        let answer = llm::ask::<T>(&model, request, &schema).await;
        *self.left.spent.lock() += model.spent();
        Ok(answer?.value)
    }

    /// Asks a model for a text.
    ///
    /// # Errors
    /// As [`Stage::ask`]; also if the answer is empty or was cut off.
    pub async fn ask_text(&self, ask: Ask) -> Result<String, StageError> {
        let request = self.request_of(&ask)?;
        let model = self.job.model(&self.ctx).remembering(self.job.ctx.state());
        let answer = model.chat(&request, None).await;
        *self.left.spent.lock() += model.spent();
        Ok(answer?.into_text()?)
    }

    /// Asks a model for a text, with `otherwise` as the replacement.
    pub async fn ask_text_or(&self, ask: Ask, otherwise: String) -> Result<String, StageError> {
        match self.ask_text(ask).await {
            Err(StageError::Failed(_)) => Ok(otherwise),
            answer => answer,
        }
    }

    fn request_of(&self, ask: &Ask) -> Result<ChatRequest, StageError> {
        let budget = self.budget();
        if budget.tokens == Some(0) || budget.nano_usd == Some(0) {
            let message = "the budget of the turn is spent";
            return Err(AgentError::new(ErrorKind::Budget, message).into());
        }
        let messages = match &ask.prompt {
            Some((template, variables)) => {
                let prompt = self.job.star.prompts.messages(template, variables);
                prompt.map_err(window::prompt_failed)?
            }
            None => Vec::new(),
        };
        let thread = self.job.star.thread(self.job.ctx.place());
        let request = ChatRequest::new(ask.role, thread, messages);
        Ok(request.agent(&self.job.agent).stage(&ask.stage))
    }

    pub fn has_tool(&self, role: &str) -> bool {
        self.job.tools.contains_key(role)
    }

    pub fn tool(&self, role: &str) -> Option<&ToolDefinition> {
        self.job.tools.get(role)
    }

    /// Keeps a text as an artifact of the thread and returns its key.
    pub fn keep(&self, name: &str, content: String) -> String {
        let key = format!("{}/{name}", self.job.assignment.id);
        let mut log = self.left.log.lock();
        let preview = window::clip(&content, 1_000);
        let artifact = Artifact::of_text(&self.job.agent, preview, content, &log.tainted_by);
        log.artifacts.made.insert(key.clone(), artifact);
        key
    }

    /// Reads an artifact of the thread or of this pipeline, whole.
    ///
    /// # Errors
    /// [`StageError`] of kind `PathResolutionError` if no artifact has that key.
    pub async fn artifact(&self, key: &str) -> Result<Arc<str>, StageError> {
        match self.find_artifact(key).await? {
            Some(whole) => Ok(whole),
            None => {
                let message = self.left.log.lock().artifacts.unknown(key);
                Err(AgentError::new(ErrorKind::PathResolution, message).into())
            }
        }
    }

    /// Reads an artifact of the thread or of this pipeline, whole, if there is one of that key.
    pub async fn find_artifact(&self, key: &str) -> Result<Option<Arc<str>>, StageError> {
        let found = self.left.log.lock().artifacts.find(key).cloned();
        let Some(artifact) = found else { return Ok(None) };
        let whole = content_of(&self.ctx, key, &artifact.content).await?;
        self.left.log.lock().tainted_by.extend(artifact.tainted_by);
        Ok(Some(whole))
    }

    /// Asks the user, and returns the answer as text once there is one.
    ///
    /// # Errors
    /// [`StageError::Stop`] until it is answered: pass it on with `?`.
    pub async fn clarify(&self, clarification: Clarification) -> Result<String, StageError> {
        let agent = Some(self.job.agent.clone());
        Ok(question::clarify(&self.ctx, Clarification { agent, ..clarification }).await?)
    }

    pub fn progress(&self, message: impl Into<String>) {
        let agent = self.job.agent.clone();
        let message = message.into();
        AgentEvent::Progress { agent, message }.publish(&self.ctx);
    }

    /// Returns the time, recorded.
    pub async fn now(&self) -> Result<DateTime<Utc>, StageError> {
        Ok(self.ctx.now().await?)
    }

    /// Draws 64 random bits, recorded.
    pub async fn random(&self) -> Result<u64, StageError> {
        Ok(self.ctx.random().await?)
    }

    pub(super) fn take(&self) -> PipelineUpdate<W> {
        let mut log = self.left.log.lock();
        PipelineUpdate {
            calls: std::mem::take(&mut log.calls),
            artifacts: std::mem::take(&mut log.artifacts.made),
            tainted_by: log.tainted_by.clone(),
            instructions: std::mem::take(&mut *self.left.instructions.lock()),
            spent: Some(*self.left.spent.lock()).filter(|spent| *spent != Spent::default()),
            stages: 1,
            ..PipelineUpdate::default()
        }
    }
}
