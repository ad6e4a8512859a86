//! Bodies of runs: checked, and kept as what they ask for.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use super::wire::{self, Modes, RunBody};
use super::{Face, Refusal};
use crate::callbacks;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Assistant, Multitask, NewDelivery, Run};
use perihelion_service::{Accept, Asked, Error, Order, Work};
use perihelion_star::TEAM_PREFIX;

/// Longest wait of a run for its time, in seconds: a year.
const LONGEST: f64 = 31_536_000.0;

/// A run that was accepted, with what its client wants to see of it.
pub(super) struct Accepted {
    pub run: Run,
    pub modes: Modes,
    pub stops_with_client: bool,
}

/// Checks a body and keeps the run that it asks for; `follows` says that the client hears of it as it runs.
pub(super) async fn accept(
    face: &Face,
    thread: Option<ThreadId>,
    body: &Value,
    follows: bool,
) -> Result<Accepted, Refusal> {
    let asked = RunBody::read(body).map_err(Refusal::invalid)?;
    // First, so that no thread is made for what is refused.
    let Checked { asked, assistant, modes, metadata, webhook, .. } = check(face, asked).await?;
    let (thread, head, temporary) = the_thread(face, thread, &asked).await?;
    let mut order = asked.order(head).map_err(Refusal::invalid)?;
    give_to_team(&mut order, &assistant);
    if let Asked::Turn(turn) = &mut order.asked {
        turn.interactive = follows;
    }
    if let Some(id) = asked.at() {
        order.at = Some(super::state::step_of(thread, id)?);
    }
    let accept = Accept {
        thread,
        assistant: assistant.id,
        order,
        shown: asked.shown(modes.names()),
        metadata,
        multitask: asked.multitask_strategy.unwrap_or(Multitask::Enqueue),
        temporary,
        due_at: due(asked.after_seconds)?,
        deliveries: webhook.map(NewDelivery::webhook).into_iter().collect(),
    };
    let run = face.service.accept(accept).await?;
    // Not before: a run that is refused changes nothing of its thread.
    face.service.note_assistant(thread, &assistant.graph, assistant.id).await?;
    let stops_with_client = asked.on_disconnect == Some(wire::OnDisconnect::Cancel);
    Ok(Accepted { run, modes, stops_with_client })
}

/// Gives the work to the team that an assistant is, unless the request names another one.
fn give_to_team(order: &mut Order, assistant: &Assistant) {
    if let Asked::Turn(turn) = &mut order.asked
        && assistant.graph.starts_with(TEAM_PREFIX)
    {
        turn.team.get_or_insert_with(|| assistant.graph.clone());
    }
}

fn webhook(face: &Face, asked: &RunBody) -> Result<Option<String>, Refusal> {
    let url = asked.webhook.as_deref().filter(|url| !url.is_empty());
    url.map(|url| callbacks::check(&face.service, url)).transpose()
}

/// What a run is asked to do, checked as far as it can be without its thread.
pub(super) struct Checked {
    pub assistant: Assistant,
    /// The body, with what its assistant says where the body does not say otherwise.
    asked: RunBody,
    modes: Modes,
    order: Order,
    metadata: Value,
    webhook: Option<String>,
}

/// Checks a body; its order is that of a thread without steps.
pub(super) async fn check(face: &Face, asked: RunBody) -> Result<Checked, Refusal> {
    let assistant = asked.assistant_id.as_deref();
    let assistant =
        assistant.ok_or_else(|| Refusal::invalid("\"assistant_id\" is a required property"))?;
    let assistant = super::assistants::named(face, assistant).await?;
    let asked = asked.over(&assistant.config, &assistant.context);
    let given = asked.stream_mode.clone().map_or_else(Vec::new, wire::OneOrMany::into_vec);
    let modes = Modes::read(given).map_err(Refusal::invalid)?;
    let mut order = asked.order(0).map_err(Refusal::invalid)?;
    give_to_team(&mut order, &assistant);
    if let Asked::Turn(turn) = &order.asked {
        let service = &face.service;
        service.who().acting_as(turn.user.as_deref())?;
        service.runtime().check_request(service.tenant(), turn.request()).await?;
    }
    due(asked.after_seconds)?;
    let metadata = metadata(&asked, &assistant)?;
    let webhook = webhook(face, &asked)?;
    Ok(Checked { assistant, asked, modes, order, metadata, webhook })
}

/// Makes what runs that begin by the clock are accepted with.
pub(super) fn work(checked: Checked) -> Result<Work, Refusal> {
    let asked = &checked.asked;
    if matches!(checked.order.asked, Asked::Resume(_)) {
        return Err(Refusal::invalid("nobody is asked yet what a cron would answer"));
    }
    Ok(Work {
        order: checked.order,
        shown: asked.shown(checked.modes.names()),
        metadata: checked.metadata,
        multitask: asked.multitask_strategy.unwrap_or(Multitask::Enqueue),
        webhook: checked.webhook,
    })
}

/// Finds the thread that a run is for, or makes it.
async fn the_thread(
    face: &Face,
    thread: Option<ThreadId>,
    asked: &RunBody,
) -> Result<(ThreadId, u64, bool), Refusal> {
    let Some(thread) = thread else {
        let thread = ThreadId::new();
        face.service.create_thread_for_turn(thread, &json!({})).await?;
        let temporary = asked.on_completion != Some(wire::OnCompletion::Keep);
        return Ok((thread, 0, temporary));
    };
    match face.service.info(thread).await {
        Ok(info) => Ok((thread, info.head, false)),
        Err(Error::UnknownThread(_)) if asked.if_not_exists == Some(wire::IfNotExists::Create) => {
            face.service.create_thread_for_turn(thread, &json!({})).await?;
            Ok((thread, 0, false))
        }
        Err(Error::UnknownThread(_)) => Err(Refusal::missing("Thread or assistant not found.")),
        Err(error) => Err(error.into()),
    }
}

fn metadata(asked: &RunBody, assistant: &Assistant) -> Result<Value, Refusal> {
    let given = super::threads::object(asked.metadata.clone(), "metadata")?;
    let mut metadata = Map::from_iter([
        ("created_by".to_owned(), json!("system")),
        ("graph_id".to_owned(), json!(assistant.graph)),
        ("assistant_id".to_owned(), json!(assistant.id)),
    ]);
    if let Value::Object(given) = given {
        metadata.extend(given);
    }
    Ok(Value::Object(metadata))
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
