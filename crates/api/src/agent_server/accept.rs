//! Bodies of runs: checked, and stored as requests.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use super::wire::{self, Modes, RunBody};
use super::{AppState, Refusal};
use crate::deliver;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Assistant, Multitask, NewDelivery, Run};
use perihelion_service::{Accept, Asked, Error, Order, Work};
use perihelion_star::TEAM_PREFIX;

/// Longest wait of a run for its time, in seconds: a year.
const LONGEST: f64 = 31_536_000.0;

pub(super) struct Accepted {
    pub run: Run,
    pub modes: Modes,
    pub stops_with_client: bool,
}

/// Checks a body and stores its run; `follows` means that the client streams it.
pub(super) async fn accept(
    app: &AppState,
    thread: Option<ThreadId>,
    body: RunBody,
    follows: bool,
) -> Result<Accepted, Refusal> {
    // First, so that no thread is made for what is refused.
    accept_checked(app, thread, check(app, body).await?, follows).await
}

/// Stores the run of a checked body.
pub(super) async fn accept_checked(
    app: &AppState,
    thread: Option<ThreadId>,
    checked: Checked,
    follows: bool,
) -> Result<Accepted, Refusal> {
    let (on, temporary) = the_thread(app, thread, &checked.body).await?;
    let accepted = accept_on(app, on, temporary, checked, follows).await;
    let made = thread.is_none().then_some(on);
    app.service.unless_refused(made, accepted).await
}

async fn accept_on(
    app: &AppState,
    thread: ThreadId,
    temporary: bool,
    checked: Checked,
    follows: bool,
) -> Result<Accepted, Refusal> {
    let Checked { assistant, body, modes, mut order, metadata, webhook } = checked;
    if let Asked::Turn(turn) = &mut order.asked {
        turn.interactive = follows;
    }
    if let Some(id) = body.at() {
        order.at = Some(super::state::step_of(app, thread, id).await?);
    }
    let accept = Accept {
        thread,
        assistant: assistant.id,
        order,
        shown: body.shown(modes.names()),
        metadata,
        multitask: body.multitask_strategy.unwrap_or(Multitask::Enqueue),
        temporary,
        due_at: due(body.after_seconds)?,
        deliveries: webhook.map(NewDelivery::webhook).into_iter().collect(),
    };
    let run = app.service.accept_of(&assistant.graph, accept).await.map_err(missing)?;
    let stops_with_client = body.on_disconnect == Some(wire::OnDisconnect::Cancel);
    Ok(Accepted { run, modes, stops_with_client })
}

/// Names an unknown thread as clients know it from LangGraph's server.
fn missing(error: Error) -> Refusal {
    match error {
        Error::UnknownThread(_) => Refusal::missing("Thread or assistant not found."),
        error => error.into(),
    }
}

/// Gives the work to the team that an assistant is, unless the request names another one.
fn give_to_team(order: &mut Order, assistant: &Assistant) {
    if let Asked::Turn(turn) = &mut order.asked
        && assistant.graph.starts_with(TEAM_PREFIX)
    {
        turn.team.get_or_insert_with(|| assistant.graph.clone());
    }
}

/// The request of a run, checked without its thread.
pub(super) struct Checked {
    pub assistant: Assistant,
    /// The body, with the defaults of its assistant.
    body: RunBody,
    modes: Modes,
    order: Order,
    metadata: Value,
    webhook: Option<String>,
}

/// Checks a body without its thread.
pub(super) async fn check(app: &AppState, body: RunBody) -> Result<Checked, Refusal> {
    let assistant = body.assistant_id.as_deref();
    let assistant =
        assistant.ok_or_else(|| Refusal::invalid("\"assistant_id\" is a required property"))?;
    let assistant = super::assistants::named(app, assistant).await?;
    let body = body.over(&assistant.config, &assistant.context);
    let given = body.stream_mode.clone().map_or_else(Vec::new, wire::OneOrMany::into_vec);
    let modes = Modes::read(given)?;
    let service = &app.service;
    let mut order = body.order(service.runtime().graph_for(&assistant.graph).as_ref())?;
    give_to_team(&mut order, &assistant);
    if let Asked::Turn(turn) = &order.asked {
        service.who().acting_as(turn.user.as_deref())?;
        service.runtime().check_request(service.tenant(), turn.clone()).await?;
    }
    due(body.after_seconds)?;
    let metadata = metadata(&body, &assistant);
    let webhook = body.webhook.as_deref().filter(|url| !url.is_empty());
    let webhook = webhook.map(|url| deliver::check(service, url)).transpose()?;
    Ok(Checked { assistant, body, modes, order, metadata, webhook })
}

/// Makes the work of runs that a cron begins.
pub(super) fn work(checked: Checked) -> Result<Work, Refusal> {
    let body = &checked.body;
    if matches!(checked.order.asked, Asked::Resume(_)) {
        let why =
            "command.resume: a cron cannot answer questions that are not asked yet; send an input";
        return Err(Refusal::invalid(why));
    }
    Ok(Work {
        order: checked.order,
        shown: body.shown(checked.modes.names()),
        metadata: checked.metadata,
        multitask: body.multitask_strategy.unwrap_or(Multitask::Enqueue),
        webhook: checked.webhook,
    })
}

/// Finds the thread that a run is for, or makes it.
async fn the_thread(
    app: &AppState,
    thread: Option<ThreadId>,
    body: &RunBody,
) -> Result<(ThreadId, bool), Refusal> {
    let there = thread.filter(|_| body.if_not_exists != Some(wire::IfNotExists::Create));
    let Some(there) = there else {
        let (created, _) = app.service.thread_for_turn(thread, &json!({})).await?;
        let keeps = body.on_completion == Some(wire::OnCompletion::Keep);
        return Ok((created, thread.is_none() && !keeps));
    };
    // Otherwise it is found, or not, when the run is accepted.
    if body.at().is_some() {
        app.service.info(there).await.map_err(missing)?;
    }
    Ok((there, false))
}

fn metadata(asked: &RunBody, assistant: &Assistant) -> Value {
    let mut metadata = Map::from_iter([
        ("created_by".to_owned(), json!("system")),
        ("graph_id".to_owned(), json!(assistant.graph)),
        ("assistant_id".to_owned(), json!(assistant.id)),
    ]);
    metadata.extend(asked.metadata.clone().unwrap_or_default());
    // A run is shown as its graph's, whatever its client notes.
    metadata.insert("graph_id".to_owned(), json!(assistant.graph));
    Value::Object(metadata)
}

fn due(after: Option<f64>) -> Result<Option<DateTime<Utc>>, Refusal> {
    match after {
        None => Ok(None),
        Some(seconds) if (0.0..=LONGEST).contains(&seconds) => {
            Ok(Some(clock::now() + TimeDelta::milliseconds((seconds * 1e3) as i64)))
        }
        Some(_) => Err(Refusal::invalid("after_seconds must be between 0 and a year")),
    }
}
