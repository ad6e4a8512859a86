//! Items that clients keep: put, found, deleted, under paths of names.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::threads::conditions;
use super::{AppState, Refusal};
use crate::http::{Asked, Body, JsonResult, StatusResult};
use perihelion_engine::clock;
use perihelion_runtime::OWN_NAMESPACES;
use perihelion_service::kept::{Item, ItemFilter};

/// Asks the store of hosted graphs, which their nodes share with clients; `None` without hosted graphs, and for the
/// namespaces of the program itself.
async fn hosted(
    app: &AppState,
    act: &str,
    path: &[String],
    with: &impl Serialize,
) -> Result<Option<Value>, Refusal> {
    if path.first().is_some_and(|name| OWN_NAMESPACES.contains(&name.as_str())) {
        return Ok(None);
    }
    let Some(graph) = app.service.runtime().hosted_graph() else { return Ok(None) };
    let order = json!({ "tenant": app.service.tenant(), "do": act, "with": with });
    Ok(graph.ask("store", order).await?)
}

/// Names of a path at most.
const LONGEST: usize = 64;

/// Bytes of a path and a key at most: databases index them.
const MOST_BYTES: usize = 2_000;

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

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Put {
    namespace: Vec<String>,
    key: String,
    value: Value,
    /// Minutes until it expires; reading it does not extend them.
    ttl: Option<f64>,
    /// The fields that a hosted graph's store embeds, or `false`.
    index: Option<Value>,
}

pub(super) async fn put(app: State<AppState>, Body(put): Body<Put>) -> StatusResult {
    path(&put.namespace)?;
    let bytes: usize = put.namespace.iter().map(|name| name.len() + 1).sum();
    if bytes + put.key.len() > MOST_BYTES {
        let why = format!("namespace and key have together at most {MOST_BYTES} bytes");
        return Err(Refusal::invalid(why));
    }
    if put.namespace.is_empty() || put.key.is_empty() || !put.value.is_object() {
        return Err(Refusal::invalid(
            "an item must have a namespace, a key, and an object as its value",
        ));
    }
    if hosted(&app, "put", &put.namespace, &put).await?.is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let Put { namespace, key, value, ttl, .. } = put;
    let now = clock::now();
    let expires_at = ttl.map(|minutes| ends_after(now, minutes)).transpose()?;
    let item = Item { namespace, key, value, created_at: now, updated_at: now, expires_at };
    app.service.kept().put_item(&item).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn ends_after(now: DateTime<Utc>, minutes: f64) -> Result<DateTime<Utc>, Refusal> {
    let seconds = (minutes > 0.0).then_some(minutes * 60.0);
    let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let ends = span.and_then(|span| now.checked_add_signed(TimeDelta::from_std(span).ok()?));
    ends.ok_or_else(|| Refusal::invalid(format!("ttl must be minutes from now: {minutes}")))
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(super) struct Named {
    namespace: String,
    key: String,
}

pub(super) async fn get(app: State<AppState>, Asked(named): Asked<Named>) -> JsonResult {
    let namespace: Vec<String> =
        named.namespace.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if let Some(item) = hosted(&app, "get", &namespace, &named).await? {
        return Ok(Json(item));
    }
    let item = app.service.kept().item(&namespace, &named.key, clock::now()).await?;
    Ok(Json(item.map_or(Value::Null, |item| shown(&item))))
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub(super) struct Delete {
    namespace: Vec<String>,
    key: String,
}

pub(super) async fn delete(app: State<AppState>, Body(delete): Body<Delete>) -> StatusResult {
    if hosted(&app, "delete", &delete.namespace, &delete).await?.is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let Delete { namespace, key } = delete;
    app.service.kept().delete_item(&namespace, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(super) struct Search {
    namespace_prefix: Vec<String>,
    filter: Option<Map<String, Value>>,
    query: Option<String>,
    limit: Option<u32>,
    offset: Option<u32>,
}

pub(super) async fn search(app: State<AppState>, Body(search): Body<Search>) -> JsonResult {
    if let Some(found) = hosted(&app, "search", &search.namespace_prefix, &search).await? {
        return Ok(Json(found));
    }
    let filter = ItemFilter {
        prefix: search.namespace_prefix,
        filter: Some(conditions(search.filter, "filter")?),
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

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub(super) struct Namespaces {
    prefix: Option<Vec<String>>,
    suffix: Option<Vec<String>>,
    max_depth: Option<usize>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// Namespaces that are read at once.
const NAMESPACES: u32 = 1_000;

/// Returns whether a path begins and ends with these names, of which `*` is any.
fn fits(path: &[String], prefix: &[String], suffix: &[String]) -> bool {
    let alike = |one: &[String], wanted: &[String]| {
        one.len() == wanted.len()
            && one.iter().zip(wanted).all(|(one, wanted)| wanted == "*" || one == wanted)
    };
    let start = path.get(..prefix.len());
    let end = path.len().checked_sub(suffix.len()).and_then(|at| path.get(at..));
    start.is_some_and(|start| alike(start, prefix)) && end.is_some_and(|end| alike(end, suffix))
}

pub(super) async fn namespaces(app: State<AppState>, Body(asked): Body<Namespaces>) -> JsonResult {
    if let Some(found) = hosted(&app, "namespaces", &[], &asked).await? {
        return Ok(Json(found));
    }
    let limit = asked.limit.unwrap_or(100);
    let offset = asked.offset.unwrap_or(0);
    let prefix = asked.prefix.as_deref().unwrap_or_default();
    let suffix = asked.suffix.as_deref().unwrap_or_default();
    let named: Vec<String> = prefix.iter().take_while(|name| *name != "*").cloned().collect();
    let now = clock::now();
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut after: Vec<String> = Vec::new();
    while found.len() < offset.saturating_add(limit) {
        let page = app.service.kept().namespaces(&named, &after, NAMESPACES, now).await?;
        let is_last = page.len() < NAMESPACES as usize;
        after = page.last().cloned().unwrap_or_default();
        for mut path in page.into_iter().filter(|path| fits(path, prefix, suffix)) {
            path.truncate(asked.max_depth.unwrap_or(usize::MAX));
            if found.last() != Some(&path) {
                found.push(path);
            }
        }
        if is_last {
            break;
        }
    }
    let page: Vec<Vec<String>> = found.into_iter().skip(offset).take(limit).collect();
    Ok(Json(json!({ "namespaces": page })))
}
