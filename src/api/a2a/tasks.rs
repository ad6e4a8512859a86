//! Tasks: begun, found, listed, cancelled.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::push;
use super::refusal::Refusal;
use crate::api::conversation::{self, Begin, Conversation};
use crate::api::request_fields::{self, RequestFields};
use crate::ids::ThreadId;
use crate::service::kept::{Cancel, Run, RunFilter, RunStatus};
use crate::service::{Error, Service, Turn};

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    InputRequired,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        }
    }

    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

/// A turn of a thread.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub id: Uuid,
    pub context: Uuid,
    /// The newest of its runs.
    pub run: Uuid,
    pub state: State,
    /// The answer, the question, or why it failed.
    pub text: Option<String>,
    /// Role, id and text of what was said.
    pub history: Vec<(&'static str, String, String)>,
    pub at: DateTime<Utc>,
    /// What its request wants with the answer.
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Send {
    pub message: Message,
    #[serde(default)]
    pub configuration: Configuration,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub message_id: String,
    #[serde(default)]
    pub context_id: Option<String>,
    #[serde(default)]
    pub task_id: Option<String>,
    pub role: String,
    pub parts: Vec<Value>,
    /// What else the request says, as OpenAI's metadata may.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub metadata: Value,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Configuration {
    pub return_immediately: bool,
    /// An address that hears of the task.
    pub task_push_notification_config: Option<push::Config>,
}

/// Begins a task, or continues one that waits.
pub(super) async fn begin(service: &Service, send: Send) -> Result<(Run, Uuid), Refusal> {
    let message = send.message;
    if message.role != "ROLE_USER" || message.message_id.is_empty() {
        return Err(Refusal::Invalid("a message has a messageId and the role ROLE_USER".into()));
    }
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part["text"].as_str()).collect();
    if texts.is_empty() || texts.len() < message.parts.len() {
        return Err(Refusal::Unsupported("only parts with text are taken".into()));
    }
    let question = texts.join("\n\n");
    let turn = Turn { question: question.clone(), ..Turn::default() };
    let turn = RequestFields::of_metadata(&message.metadata)?.applied_to(service, turn)?;
    let named = match &message.task_id {
        Some(id) => Some(found(service, id).await?),
        None => None,
    };
    if let Some(task) = &named {
        if task.state.is_over() {
            return Err(Refusal::Unsupported(format!("the task has ended: {}", task.id)));
        }
        if message.context_id.as_ref().is_some_and(|context| *context != task.context.to_string()) {
            return Err(Refusal::Invalid("the task is of another context".into()));
        }
    }
    let thread = match (&named, &message.context_id) {
        (Some(task), _) => ThreadId(task.context),
        (None, Some(context)) => the_context(service, context).await?,
        (None, None) => {
            let thread = ThreadId::new();
            service.create_thread(thread, &json!({})).await?;
            thread
        }
    };
    let said = json!({ "task": named.as_ref().map(|task| task.id), "message": message.message_id, "text": question });
    let wanted = send.configuration.task_push_notification_config;
    let mut deliveries = match &named {
        Some(task) => push::of_task(service, task.id).await?,
        None => Vec::new(),
    };
    if let Some(config) = &wanted {
        for delivery in config.deliveries(service)? {
            if !deliveries.contains(&delivery) {
                deliveries.push(delivery);
            }
        }
    }
    let metadata = json!({ "a2a": said });
    let begin = Begin { thread, at: None, turn, metadata, deliveries };
    let run = conversation::begin(service, begin).await?;
    let task = named.map_or(run.id, |task| task.id);
    if let Some(config) = wanted {
        push::keep(service, task, config).await?;
    }
    Ok((run, task))
}

/// Finds the thread of a context; a client's own name for one makes a thread of that name.
async fn the_context(service: &Service, context: &str) -> Result<ThreadId, Refusal> {
    let (thread, name) = match service.tenant() == service.runtime().runner().tenant() {
        true => ThreadId::from_name(context),
        // Each tenant has names of its own.
        false => ThreadId::from_name_of(service.tenant(), context),
    };
    match service.info(thread).await {
        Ok(_) => Ok(thread),
        Err(Error::UnknownThread(_)) => {
            let metadata = name.map_or_else(|| json!({}), |name| json!({ "title": name }));
            service.create_thread(thread, &metadata).await?;
            Ok(thread)
        }
        Err(error) => Err(error.into()),
    }
}

/// Finds a task by its id.
pub(super) async fn found(service: &Service, id: &str) -> Result<Task, Refusal> {
    let missing = || Refusal::TaskNotFound(id.to_owned());
    let id = Uuid::parse_str(id).map_err(|_| missing())?;
    let first = service.kept().find_run(id).await?.ok_or_else(missing)?;
    of_run(service, &first).await
}

/// Reads the task that a run began.
pub(super) async fn of_run(service: &Service, first: &Run) -> Result<Task, Refusal> {
    let filter = RunFilter { status: None, limit: 1_000, offset: 0 };
    let all = service.kept().runs(first.thread, &filter).await?;
    let id = first.id.to_string();
    let mut runs: Vec<&Run> = all
        .iter()
        .filter(|run| run.id == first.id || run.metadata["a2a"]["task"].as_str() == Some(&id))
        .collect();
    runs.reverse();
    let mut history = Vec::new();
    for run in &runs {
        let said = &run.metadata["a2a"];
        if let (Some(message), Some(text)) = (said["message"].as_str(), said["text"].as_str()) {
            history.push(("ROLE_USER", message.to_owned(), text.to_owned()));
        }
    }
    let newest = runs.last().copied().unwrap_or(first);
    let (state, text) = stands(service, newest).await?;
    let more = match state {
        State::Completed => request_fields::asked_for(service, newest).await?,
        _ => Map::new(),
    };
    Ok(Task {
        id: first.id,
        context: first.thread,
        run: newest.id,
        state,
        text,
        history,
        at: newest.updated_at,
        more,
    })
}

/// Says how a run left its task, and what was said last.
pub(super) async fn stands(
    service: &Service,
    run: &Run,
) -> Result<(State, Option<String>), Refusal> {
    Ok(match run.status {
        RunStatus::Pending => (State::Submitted, None),
        RunStatus::Running => (State::Working, None),
        RunStatus::Interrupted => (State::Canceled, None),
        RunStatus::Error | RunStatus::Timeout => {
            let why = run.error.as_ref().and_then(|why| why["message"].as_str());
            (State::Failed, why.map(str::to_owned))
        }
        RunStatus::Success => {
            let follow = Conversation::follow(service, run.clone()).await?;
            let outcome = follow.outcome().await;
            let state = if outcome.asks { State::InputRequired } else { State::Completed };
            (state, Some(outcome.text))
        }
    })
}

/// Stops a task.
pub(super) async fn cancel(service: &Service, id: &str) -> Result<Task, Refusal> {
    let task = found(service, id).await?;
    let run = service.kept().find_run(task.run).await?;
    let run = run.ok_or_else(|| Refusal::TaskNotFound(id.to_owned()))?;
    if service.cancel(&run, Cancel::Interrupt).await?.is_none() {
        return Err(Refusal::TaskNotCancelable(id.to_owned()));
    }
    service.ended(ThreadId(run.thread), run.id).await?;
    found(service, id).await
}
