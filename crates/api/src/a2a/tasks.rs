//! Tasks: begun, found, listed, cancelled.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::refusal::Refusal;
use super::state::{self, State};
use super::{push, runs};
use crate::conversation::{self, Begin};
use crate::request_fields::{self, RequestFields};
use perihelion_engine::graph::END;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Cancel, Multitask, Run};
use perihelion_service::{Accept, Asked, Error, Order, Service, assistant_of};
use perihelion_star::Request;

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub id: Uuid,
    pub context: Uuid,
    /// The newest of its runs.
    pub run: Uuid,
    pub state: State,
    /// The answer, the question, or why it failed.
    pub text: Option<String>,
    pub history: Vec<TaskMessage>,
    pub at: DateTime<Utc>,
    /// The options of the answer in its request.
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub(super) struct TaskMessage {
    pub role: &'static str,
    pub id: String,
    pub texts: Vec<String>,
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
    #[serde(alias = "message_id")]
    pub message_id: String,
    #[serde(default, alias = "context_id")]
    pub context_id: Option<String>,
    #[serde(default, alias = "task_id")]
    pub task_id: Option<String>,
    pub role: String,
    pub parts: Vec<Value>,
    /// The further fields of the request, as in OpenAI's metadata.
    pub metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Configuration {
    #[serde(alias = "return_immediately")]
    pub return_immediately: bool,
    /// How many of the task's newest messages the answer shows.
    #[serde(alias = "history_length")]
    pub history_length: Option<u32>,
    /// An address with push notifications of the task.
    #[serde(alias = "task_push_notification_config")]
    pub task_push_notification_config: Option<push::Config>,
}

pub(super) async fn begin(service: &Service, send: Send) -> Result<(Run, Uuid), Refusal> {
    let message = send.message;
    if message.role != "ROLE_USER" || message.message_id.is_empty() {
        return Err(Refusal::Invalid("a message needs a messageId and the role ROLE_USER".into()));
    }
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part["text"].as_str()).collect();
    if texts.len() < message.parts.len() {
        return Err(Refusal::ContentType("only text parts are supported".into()));
    }
    if texts.is_empty() {
        return Err(Refusal::Invalid("a message needs at least one part".into()));
    }
    let question = texts.join("\n\n");
    let turn = Request { question: question.clone(), ..Request::default() };
    let turn = RequestFields::of_metadata(message.metadata.as_ref())?.applied_to(service, turn)?;
    let named = match &message.task_id {
        Some(id) => Some(found(service, id).await?),
        None => None,
    };
    if let Some(task) = &named {
        if task.state.is_over() {
            return Err(Refusal::Unsupported(format!("the task has ended: {}", task.id)));
        }
        let context = message.context_id.as_deref().map(|context| thread_of(service, context).0.0);
        if context.is_some_and(|context| context != task.context) {
            return Err(Refusal::Invalid("the task belongs to another context".into()));
        }
    }
    let words = json!({ "task": named.as_ref().map(|task| task.id), "message": message.message_id, "parts": texts });
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
    let on = match (&named, &message.context_id) {
        (Some(task), _) => (ThreadId(task.context), false),
        // A client's own name for a context makes a thread of that name.
        (None, Some(context)) => {
            let (thread, name) = thread_of(service, context);
            let metadata = name.map_or_else(|| json!({}), |name| json!({ "title": name }));
            service.thread_for_turn(Some(thread), &metadata).await?
        }
        (None, None) => service.thread_for_turn(None, &json!({})).await?,
    };
    let begin = Begin { deliveries, ..Begin::on(on, json!({ "a2a": words })) };
    let run = conversation::begin(service, begin, turn).await?;
    let task = named.map_or(run.id, |task| task.id);
    if let Some(config) = wanted {
        push::keep(service, task, config).await?;
    }
    Ok((run, task))
}

/// Returns the thread of a context, and the client's own name for it.
pub(super) fn thread_of<'a>(service: &Service, context: &'a str) -> (ThreadId, Option<&'a str>) {
    if service.tenant() == &*service.runtime().runner().tenant {
        ThreadId::from_name(context)
    } else {
        // Each tenant has names of its own.
        ThreadId::from_name_of(service.tenant(), context)
    }
}

pub(super) async fn found(service: &Service, id: &str) -> Result<Task, Refusal> {
    let missing = || Refusal::TaskNotFound(id.to_owned());
    let id = Uuid::parse_str(id).map_err(|_| missing())?;
    let first = service.kept().find_run(id).await?.ok_or_else(missing)?;
    let all = runs::since(service, &first).await?;
    let of_task = runs::of_task(&first, &all);
    let newest = of_task.last().copied().unwrap_or(&first);
    let mut task = Task::of(&first, &of_task, State::Submitted);
    (task.state, task.text) = state::of_run(service, newest).await?;
    if task.state == State::Completed {
        task.more = request_fields::asked_for(service, newest).await?;
    }
    Ok(task)
}

impl Task {
    /// Composes a task from its runs, oldest first, and adds the last message and the requested fields.
    pub(super) fn of(first: &Run, runs: &[&Run], state: State) -> Self {
        let newest = runs.last().copied().unwrap_or(first);
        Self {
            id: first.id,
            context: first.thread,
            run: newest.id,
            state,
            text: None,
            history: runs.iter().filter_map(|run| message_of(run)).collect(),
            at: newest.updated_at,
            more: Map::new(),
        }
    }
}

fn message_of(run: &Run) -> Option<TaskMessage> {
    let words = &run.metadata["a2a"];
    let id = words["message"].as_str()?.to_owned();
    let texts = match words["parts"].as_array() {
        Some(parts) => parts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => vec![words["text"].as_str()?.to_owned()],
    };
    Some(TaskMessage { role: "ROLE_USER", id, texts })
}

pub(super) async fn cancel(service: &Service, id: &str) -> Result<Task, Refusal> {
    let task = found(service, id).await?;
    if task.state == State::InputRequired {
        return withdraw(service, &task).await;
    }
    let run = service.kept().find_run(task.run).await?;
    let run = run.ok_or_else(|| Refusal::TaskNotFound(id.to_owned()))?;
    if service.cancel(&run, Cancel::Interrupt).await?.is_none() {
        return Err(Refusal::TaskNotCancelable(id.to_owned()));
    }
    service.ended(ThreadId(run.thread), run.id).await?;
    found(service, id).await
}

/// Ends a task that waits for an answer: a separate run withdraws its questions.
async fn withdraw(service: &Service, task: &Task) -> Result<Task, Refusal> {
    let thread = ThreadId(task.context);
    let assistant = assistant_of(&service.info(thread).await?.graph);
    let as_node = Some(END.to_owned());
    let order = Order::new(Asked::Edit { update: json!({}), as_node, goto: Vec::new() });
    let accept = Accept {
        thread,
        assistant,
        order,
        shown: json!({ "input": null, "command": { "goto": END } }),
        metadata: json!({ "a2a": { "task": task.id, "cancels": true } }),
        multitask: Multitask::Reject,
        temporary: false,
        due_at: None,
        deliveries: push::of_task(service, task.id).await?,
    };
    let run = match service.accept(accept).await {
        // Somebody answers at this moment.
        Err(Error::Busy) => return Err(Refusal::TaskNotCancelable(task.id.to_string())),
        other => other?,
    };
    service.ended(thread, run.id).await?;
    found(service, &task.id.to_string()).await
}
