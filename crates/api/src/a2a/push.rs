//! Push notifications: addresses that get a message when a run of a task continues, and the task's status at its end.

use axum::Json;
use axum::extract::{self, Path};
use axum::http::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::body::Body;
use super::refusal::Refusal;
use super::state::State;
use super::tasks::{self, Task};
use super::{runs, shapes};
use crate::deliver;
use crate::http::{JsonResult, Refusal as Plain};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_service::Service;
use perihelion_service::kept::{NewDelivery, Run};

pub(crate) const KIND: &str = "a2a";

pub(crate) const MEDIA: &str = "application/a2a+json";

/// Addresses of one task at most.
const MOST: usize = 16;

/// An address with push notifications of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Config {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "task_id")]
    pub task_id: Option<String>,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Authentication {
    scheme: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

impl Config {
    /// Checks its target, and returns its messages: a run continues, and it has ended.
    pub(super) fn deliveries(&self, service: &Service) -> Result<[NewDelivery; 2], Plain> {
        let url = deliver::check(service, &self.url)?;
        let mut headers = json!({});
        if let Some(token) = &self.token {
            headers["x-a2a-notification-token"] = json!(token);
        }
        if let Some(Authentication { scheme, credentials }) = &self.authentication {
            let credentials = credentials.as_deref().unwrap_or_default();
            headers["authorization"] = json!(format!("{scheme} {credentials}").trim());
        }
        let mut values = headers.as_object().into_iter().flatten();
        let is_unfit =
            |value: &Value| value.as_str().is_none_or(|text| HeaderValue::from_str(text).is_err());
        if let Some((name, _)) = values.find(|(_, value)| is_unfit(value)) {
            let why =
                "has a line end or a control character, which no header can have; send it without";
            return Err(Plain::invalid(format!("the value for the header {name} {why}")));
        }
        let end = NewDelivery { kind: KIND, url, headers, is_under_way: false };
        Ok([NewDelivery { is_under_way: true, ..end.clone() }, end])
    }
}

/// Returns the messages about the next run of a task.
pub(super) async fn of_task(service: &Service, task: Uuid) -> Result<Vec<NewDelivery>, Plain> {
    let configs = service.kept().pushes(task).await?;
    let read = configs.into_iter().filter_map(|(_, config)| serde_json::from_value(config).ok());
    let all: Result<Vec<_>, Plain> =
        read.map(|config: Config| config.deliveries(service)).collect();
    Ok(all?.into_iter().flatten().collect())
}

/// Stores an address of a task; an active task also notifies it of its end.
pub(super) async fn create(
    service: extract::State<Service>,
    Path(task): Path<String>,
    Body(config): Body<Config>,
) -> JsonResult<Refusal> {
    let (task, _) = all_of(&service, &task).await?;
    let deliveries = config.deliveries(&service)?;
    let (kept, is_new) = keep(&service, task.id, config).await?;
    if is_new && !task.state.is_over() && task.state != State::InputRequired {
        for delivery in &deliveries {
            service.kept().add_delivery(task.run, delivery, clock::now()).await?;
        }
    }
    Ok(Json(kept))
}

/// Stores an address of a task. Returns it, and whether it is new: clients send the same one with each message.
pub(super) async fn keep(
    service: &Service,
    task: Uuid,
    config: Config,
) -> Result<(Value, bool), Refusal> {
    let named = |id: &String| {
        json!(Config { id: Some(id.clone()), task_id: Some(task.to_string()), ..config.clone() })
    };
    let there = service.kept().pushes(task).await?;
    let same = there.iter().find(|(id, known)| *known == named(id));
    let id = config.id.clone().filter(|id| !id.is_empty());
    let id = id.or_else(|| same.map(|(id, _)| id.clone()));
    let id = id.unwrap_or_else(|| Uuid::now_v7().to_string());
    if there.len() >= MOST && there.iter().all(|(known, _)| *known != id) {
        return Err(Refusal::Invalid(format!("a task has at most {MOST} addresses")));
    }
    let shown = named(&id);
    service.kept().put_push(task, &id, &shown, clock::now()).await?;
    Ok((shown, same.is_none()))
}

pub(super) async fn get(
    service: extract::State<Service>,
    Path((task, id)): Path<(String, String)>,
) -> JsonResult<Refusal> {
    let all = all_of(&service, &task).await?.1;
    let found = all.into_iter().find(|(known, _)| *known == id);
    let missing = || Refusal::TaskNotFound(format!("{task}, {id}"));
    found.map(|(_, config)| Json(config)).ok_or_else(missing)
}

pub(super) async fn list(
    service: extract::State<Service>,
    Path(task): Path<String>,
) -> JsonResult<Refusal> {
    let all = all_of(&service, &task).await?.1.into_iter().map(|(_, config)| config);
    Ok(Json(json!({ "configs": all.collect::<Vec<_>>(), "nextPageToken": "" })))
}

pub(super) async fn delete(
    service: extract::State<Service>,
    Path((task, id)): Path<(String, String)>,
) -> JsonResult<Refusal> {
    let (task, _) = all_of(&service, &task).await?;
    service.kept().delete_push(task.id, &id).await?;
    Ok(Json(json!({})))
}

/// Finds a task with its addresses, which contain secrets and are shown only to the user of its thread.
async fn all_of(service: &Service, task: &str) -> Result<(Task, Vec<(String, Value)>), Refusal> {
    let task = tasks::found(service, task).await?;
    service.user_on(ThreadId(task.context), None).await?;
    let all = service.kept().pushes(task.id).await?;
    Ok((task, all))
}

/// Sends a task to an address, unless the address was deleted since.
pub(crate) async fn pushed(
    service: &Service,
    run: &Run,
    url: &str,
    is_under_way: bool,
) -> Result<Option<Value>, Refusal> {
    let Some(task) = runs::at(service, run).await? else {
        return Ok(None);
    };
    let task = tasks::found(service, &task.to_string()).await?;
    let there = service.kept().pushes(task.id).await?;
    if is_under_way && task.state != State::Working {
        return Ok(None);
    }
    let is_kept = there.iter().any(|(_, config)| {
        let of = config["url"].as_str().and_then(|of| deliver::check(service, of).ok());
        of.as_deref() == Some(url)
    });
    Ok(is_kept.then(|| {
        if is_under_way {
            shapes::status_update(&task)
        } else {
            json!({ "task": shapes::task(&task) })
        }
    }))
}
