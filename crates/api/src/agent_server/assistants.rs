//! Assistants: the graphs themselves, and configurations of them that clients made.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::threads::object;
use super::{AppState, Refusal, wire};
use crate::http::{Asked, Body, JsonResult, StatusResult};
use crate::team;
use perihelion_engine::clock;
use perihelion_runtime::{AboutGraph, KeptTeam};
use perihelion_service::assistant_of;
use perihelion_service::kept::Assistant;

/// Assistants, or versions of one, of one answer at most.
pub(super) const MOST: usize = 1_000;

pub(super) async fn named(app: &AppState, name: &str) -> Result<Assistant, Refusal> {
    find(app, name).await?.ok_or_else(|| match Uuid::parse_str(name) {
        Ok(_) => Refusal::missing("Thread or assistant not found."),
        Err(_) => Refusal::invalid(format!(
            "Invalid assistant: '{name}'. Must be either:\n- A valid assistant UUID, or\n- One of the registered graphs: {}",
            app.service.runtime().graph_names().join(", ")
        )),
    })
}

/// Finds an assistant by its ID, or by the name of its graph or team.
async fn find(app: &AppState, name: &str) -> Result<Option<Assistant>, Refusal> {
    let id = Uuid::parse_str(name).ok();
    let is_it = |one: &Assistant| one.graph == name || Some(one.id) == id;
    if let Some(own) = of_graphs(app).into_iter().find(is_it) {
        return Ok(Some(own));
    }
    match (of_teams(app).await?.into_iter().find(is_it), id) {
        (Some(team), _) => Ok(Some(team)),
        (None, Some(id)) => Ok(app.service.kept().assistant(id).await?),
        (None, None) => Ok(None),
    }
}

/// Returns the default assistants of the program's graphs, the supervisor graph's first.
pub(super) fn of_graphs(app: &AppState) -> Vec<Assistant> {
    let assistant = |about: &AboutGraph| Assistant {
        description: about.description.clone(),
        ..default_assistant(assistant_of(&about.name), about.name.clone(), app.since)
    };
    app.service.runtime().graphs().map(|graph| assistant(graph.about())).collect()
}

/// Returns the assistants of a tenant's teams, by their names: each is a separate graph.
pub(super) async fn of_teams(app: &AppState) -> Result<Vec<Assistant>, Refusal> {
    Ok(team::all(&app.service).await?.iter().map(team_assistant).collect())
}

fn default_assistant(id: Uuid, graph: String, since: DateTime<Utc>) -> Assistant {
    Assistant {
        id,
        version: 1,
        name: graph.clone(),
        graph,
        description: None,
        config: json!({}),
        context: json!({}),
        metadata: json!({ "created_by": "system" }),
        created_at: since,
        updated_at: since,
    }
}

fn team_assistant(kept: &KeptTeam) -> Assistant {
    let graph = kept.team.agent_name();
    Assistant {
        version: kept.team.version,
        description: Some(kept.team.design.description.clone()),
        metadata: json!({ "created_by": "system", "team": kept.team.design.name }),
        ..default_assistant(assistant_of(&graph), graph, kept.created_at)
    }
}

async fn is_known(app: &AppState, graph: &str) -> Result<bool, Refusal> {
    let is_team = |team: &Assistant| team.graph == graph;
    Ok(app.service.runtime().graph(graph).is_ok() || of_teams(app).await?.iter().any(is_team))
}

pub(super) async fn found(app: &AppState, id: &str) -> Result<Assistant, Refusal> {
    find(app, id).await?.ok_or_else(|| match Uuid::parse_str(id) {
        Ok(_) => Refusal::missing(format!("Assistant with ID {id} not found")),
        Err(_) => Refusal::invalid("Invalid assistant ID: must be a UUID"),
    })
}

pub(super) async fn get(app: State<AppState>, Path(id): Path<String>) -> JsonResult {
    Ok(Json(wire::shown_assistant(&found(&app, &id).await?)))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Create {
    assistant_id: Option<Uuid>,
    graph_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    config: Option<Map<String, Value>>,
    context: Option<Value>,
    metadata: Option<Map<String, Value>>,
    if_exists: Option<String>,
}

pub(super) async fn create(app: State<AppState>, Body(create): Body<Create>) -> JsonResult {
    let graph =
        create.graph_id.ok_or_else(|| Refusal::invalid("\"graph_id\" is a required property"))?;
    if !is_known(&app, &graph).await? {
        return Err(Refusal::missing(format!(
            "Graph '{graph}' not found. Available graphs: {}",
            app.service.runtime().graph_names().join(", ")
        )));
    }
    let id = create.assistant_id.unwrap_or_else(Uuid::new_v4);
    let there = match find(&app, &id.to_string()).await? {
        Some(there) => there,
        None => {
            let (config, context) = configuration(create.config, create.context)?;
            let assistant = Assistant {
                name: create.name.unwrap_or_else(|| "Untitled".into()),
                description: create.description,
                config,
                context,
                metadata: Value::Object(create.metadata.unwrap_or_default()),
                ..default_assistant(id, graph, clock::now())
            };
            let Err(refusal) = put(&app, &assistant).await else {
                return Ok(Json(wire::shown_assistant(&assistant)));
            };
            // Another request may have created it since.
            find(&app, &id.to_string()).await?.ok_or(refusal)?
        }
    };
    if create.if_exists.as_deref() != Some("do_nothing") {
        let why = format!("Assistant with ID {id} already exists");
        return Err(Refusal(StatusCode::CONFLICT, why));
    }
    Ok(Json(wire::shown_assistant(&there)))
}

/// Reads configuration and context of an assistant: a missing one has the values of the other.
fn configuration(
    config: Option<Map<String, Value>>,
    context: Option<Value>,
) -> Result<(Value, Value), Refusal> {
    let mut config = Value::Object(config.unwrap_or_default());
    let context = object(context, "context")?;
    let is_empty = |fields: &Value| fields.as_object().is_none_or(Map::is_empty);
    if is_empty(&context) {
        let context = Some(config["configurable"].clone()).filter(|given| !given.is_null());
        return Ok((config, context.unwrap_or_else(|| json!({}))));
    }
    if is_empty(&config["configurable"]) {
        config["configurable"] = context.clone();
    }
    Ok((config, context))
}

/// Keeps a version of an assistant. An ID of another tenant is treated as unknown.
async fn put(app: &AppState, assistant: &Assistant) -> Result<(), Refusal> {
    let id = assistant.id;
    match app.service.kept().put_assistant(assistant).await {
        Err(error) if error.is_duplicate() => match find(app, &id.to_string()).await? {
            Some(_) => {
                let why = format!(
                    "Assistant with ID {id} was changed at the same time; read it and try again"
                );
                Err(Refusal(StatusCode::CONFLICT, why))
            }
            None => Err(Refusal::missing(format!("Assistant with ID {id} not found"))),
        },
        other => Ok(other?),
    }
}

pub(super) async fn update(
    app: State<AppState>,
    Path(id): Path<String>,
    Body(change): Body<Create>,
) -> JsonResult {
    let now = found(&app, &id).await?;
    if app.service.kept().assistant(now.id).await?.is_none() {
        let why = "a graph's default assistant cannot be changed; create another assistant";
        return Err(Refusal(StatusCode::CONFLICT, why.into()));
    }
    let newest = app.service.kept().assistant_versions(now.id).await?;
    let version = newest.first().map_or(1, |one| one.version) + 1;
    let (config, context) = match (change.config, change.context) {
        (None, None) => (now.config, now.context),
        (None, Some(context)) => {
            let context = object(Some(context), "context")?;
            let mut config = now.config;
            config["configurable"] = context.clone();
            (config, context)
        }
        (config, None) => {
            let (config, context) = configuration(config, None)?;
            (config, if context == json!({}) { now.context } else { context })
        }
        (config, context) => configuration(config, context)?,
    };
    let changed = Assistant {
        version,
        graph: change.graph_id.unwrap_or(now.graph),
        name: change.name.unwrap_or(now.name),
        description: change.description.or(now.description),
        config,
        context,
        metadata: merged(now.metadata, change.metadata),
        updated_at: clock::now(),
        ..now
    };
    if !is_known(&app, &changed.graph).await? {
        return Err(Refusal::missing(format!("Graph '{}' not found", changed.graph)));
    }
    put(&app, &changed).await?;
    Ok(Json(wire::shown_assistant(&changed)))
}

fn merged(mut there: Value, given: Option<Map<String, Value>>) -> Value {
    if let Some(there) = there.as_object_mut() {
        there.extend(given.unwrap_or_default());
    }
    there
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Deletion {
    /// Whether the threads that the assistant ran last are deleted, too: `true`.
    delete_threads: Option<String>,
}

pub(super) async fn delete(
    app: State<AppState>,
    Path(id): Path<String>,
    Asked(deletion): Asked<Deletion>,
) -> StatusResult {
    let assistant = found(&app, &id).await?;
    let kept = app.service.kept();
    if kept.assistant(assistant.id).await?.is_none() {
        let why = "a graph's default assistant cannot be deleted";
        return Err(Refusal(StatusCode::CONFLICT, why.into()));
    }
    let others = app.service.others_crons(assistant.id).await?;
    if others > 0 {
        let why = format!(
            "the assistant has cron jobs in threads of other users, who must delete them first: {others}"
        );
        return Err(Refusal(StatusCode::CONFLICT, why));
    }
    if deletion.delete_threads.is_some_and(|word| word.eq_ignore_ascii_case("true")) {
        app.service.delete_threads_of(assistant.id).await?;
    }
    kept.delete_assistant(assistant.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which versions of an assistant are listed.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    metadata: Option<Map<String, Value>>,
    limit: Option<usize>,
    offset: Option<usize>,
}

pub(super) async fn versions(
    app: State<AppState>,
    Path(id): Path<String>,
    Body(which): Body<Which>,
) -> Result<Json<Vec<Value>>, Refusal> {
    let wanted = Value::Object(which.metadata.unwrap_or_default());
    let assistant = found(&app, &id).await?;
    let mut all = app.service.kept().assistant_versions(assistant.id).await?;
    if all.is_empty() {
        all.push(assistant);
    }
    all.retain(|one| has_all(&one.metadata, &wanted));
    let page = all.iter().skip(which.offset.unwrap_or(0));
    let page = page.take(which.limit.unwrap_or(10).clamp(1, MOST));
    Ok(Json(page.map(wire::shown_assistant).collect()))
}

pub(super) fn has_all(metadata: &Value, wanted: &Value) -> bool {
    let mut wanted = wanted.as_object().into_iter().flatten();
    wanted.all(|(key, value)| metadata.get(key) == Some(value))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Choose {
    version: u32,
}

pub(super) async fn choose(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Body(Choose { version }): Body<Choose>,
) -> JsonResult {
    let assistant = found(&app, &id).await?;
    if !app.service.kept().choose_assistant(assistant.id, version).await? {
        return Err(Refusal::missing(format!("Assistant {id} has no version: {version}")));
    }
    get(State(app), Path(id)).await
}
