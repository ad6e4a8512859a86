//! Items that clients keep: put, found, deleted, under paths of names.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::threads::object;
use super::{AppState, Refusal};
use crate::http::{Asked, Body, Forms, JsonResult, StatusResult};
use perihelion_engine::clock;
use perihelion_service::kept::{Item, ItemFilter};

/// Names of a path, and letters of one, at most.
const LONGEST: usize = 64;

fn shown(item: &Item) -> Value {
    json!({
        "namespace": item.namespace, "key": item.key, "value": item.value,
        "created_at": item.created_at, "updated_at": item.updated_at,
    })
}

fn path(names: &[String]) -> Result<(), Refusal> {
    let is_fine = |name: &String| {
        !name.is_empty() && !name.contains('.') && !name.chars().any(char::is_control)
    };
    if names.len() <= LONGEST && names.iter().all(is_fine) {
        Ok(())
    } else {
        Err(Refusal::invalid(
            "a namespace must be a list of names without dots, none of them empty",
        ))
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Put {
    namespace: Vec<String>,
    key: String,
    value: Value,
    /// Minutes until it is gone; reading it makes them no more.
    ttl: Option<f64>,
}

pub(super) async fn put(State(app): State<AppState>, body: Body) -> StatusResult {
    let Put { namespace, key, value, ttl } = body.read()?;
    path(&namespace)?;
    if namespace.is_empty() || key.is_empty() || !value.is_object() {
        return Err(Refusal::invalid(
            "an item must have a namespace, a key, and an object as its value",
        ));
    }
    let now = clock::now();
    let expires_at = ttl.map(|minutes| ends_after(now, minutes)).transpose()?;
    let item = Item { namespace, key, value, created_at: now, updated_at: now, expires_at };
    app.service.kept().put_item(&item).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns when so many minutes have passed.
fn ends_after(now: DateTime<Utc>, minutes: f64) -> Result<DateTime<Utc>, Refusal> {
    let seconds = (minutes > 0.0).then_some(minutes * 60.0);
    let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let ends = span.and_then(|span| now.checked_add_signed(TimeDelta::from_std(span).ok()?));
    ends.ok_or_else(|| Refusal::invalid(format!("ttl must be minutes from now: {minutes}")))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Named {
    namespace: String,
    key: String,
}

pub(super) async fn get(State(app): State<AppState>, Asked(named): Asked<Named>) -> JsonResult {
    let namespace: Vec<String> =
        named.namespace.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let item = app.service.kept().item(&namespace, &named.key, clock::now()).await?;
    Ok(Json(item.map_or(Value::Null, |item| shown(&item))))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Delete {
    namespace: Vec<String>,
    key: String,
}

pub(super) async fn delete(State(app): State<AppState>, body: Body) -> StatusResult {
    let Delete { namespace, key } = body.read()?;
    app.service.kept().delete_item(&namespace, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Search {
    namespace_prefix: Vec<String>,
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    filter: Option<Value>,
    query: Option<String>,
    limit: Option<u32>,
    offset: Option<u32>,
}

pub(super) async fn search(State(app): State<AppState>, body: Body) -> JsonResult {
    let search: Search = body.read()?;
    let filter = ItemFilter {
        prefix: search.namespace_prefix,
        filter: Some(object(search.filter, "filter")?),
        words: search.query.filter(|query| !query.is_empty()),
        limit: search.limit.unwrap_or(10).clamp(1, 1_000),
        offset: search.offset.unwrap_or(0),
    };
    let items = app.service.kept().items(&filter, clock::now()).await?;
    let scored = items.iter().map(|item| {
        let mut shown = shown(item);
        shown["score"] = Value::Null;
        shown
    });
    Ok(Json(json!({ "items": scored.collect::<Vec<_>>() })))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Namespaces {
    prefix: Option<Vec<String>>,
    suffix: Option<Vec<String>>,
    max_depth: Option<usize>,
    limit: Option<usize>,
    offset: Option<usize>,
}

pub(super) async fn namespaces(State(app): State<AppState>, body: Body) -> JsonResult {
    let asked: Namespaces = body.read()?;
    let mut found = app.service.kept().namespaces(clock::now()).await?;
    let alike = |one: &[String], wanted: &[String]| {
        one.len() == wanted.len()
            && one.iter().zip(wanted).all(|(one, wanted)| wanted == "*" || one == wanted)
    };
    if let Some(prefix) = &asked.prefix {
        found.retain(|path| path.get(..prefix.len()).is_some_and(|start| alike(start, prefix)));
    }
    if let Some(suffix) = &asked.suffix {
        found.retain(|path| {
            let start = path.len().checked_sub(suffix.len());
            start.and_then(|start| path.get(start..)).is_some_and(|end| alike(end, suffix))
        });
    }
    if let Some(depth) = asked.max_depth {
        found.iter_mut().for_each(|path| path.truncate(depth));
        found.dedup();
    }
    let limit = asked.limit.unwrap_or(100);
    let offset = asked.offset.unwrap_or(0);
    let page: Vec<Vec<String>> = found.into_iter().skip(offset).take(limit).collect();
    Ok(Json(json!({ "namespaces": page })))
}

pub(super) fn forms(forms: &mut Forms) {
    forms.body::<Put>("put /store/items");
    forms.query::<Named>("get /store/items");
    forms.body::<Delete>("delete /store/items");
    forms.body::<Search>("post /store/items/search");
    forms.body::<Namespaces>("post /store/namespaces");
}
