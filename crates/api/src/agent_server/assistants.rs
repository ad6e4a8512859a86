//! Assistants: the graphs themselves, and configurations of them that clients made.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::body::Body;
use super::{Face, Refusal, threads::object, wire};
use crate::openapi::Forms;
use perihelion_engine::clock;
use perihelion_engine::graph::END;
use perihelion_runtime as runtime;
use perihelion_service::kept::Assistant;
use perihelion_star::{GRAPH, TEAM_PREFIX, node_names};

/// Assistants, or versions of one, of one answer at most.
pub(super) const MOST: usize = 1_000;

/// Finds the assistant that a run names: by its id, or by its graph's name.
pub(super) async fn named(face: &Face, name: &str) -> Result<Assistant, Refusal> {
    if wire::is_graph(name) {
        return Ok(wire::default_assistant(name, face.since));
    }
    if let Some(team) = of_teams(face).await?.into_iter().find(|team| team.graph == name) {
        return Ok(team);
    }
    let unknown = || {
        Refusal::invalid(format!(
            "Invalid assistant: '{name}'. Must be either:\n- A valid assistant UUID, or\n- One of the registered graphs: {GRAPH}"
        ))
    };
    let id = Uuid::parse_str(name).map_err(|_| unknown())?;
    by_id(face, id).await?.ok_or_else(unknown)
}

async fn by_id(face: &Face, id: Uuid) -> Result<Option<Assistant>, Refusal> {
    let own = wire::default_assistant(GRAPH, face.since);
    if own.id == id {
        return Ok(Some(own));
    }
    match of_teams(face).await?.into_iter().find(|team| team.id == id) {
        Some(team) => Ok(Some(team)),
        None => Ok(face.service.kept().assistant(id).await?),
    }
}

/// Returns the assistants that a tenant's teams are, by their names: each is a graph of its own.
pub(super) async fn of_teams(face: &Face) -> Result<Vec<Assistant>, Refusal> {
    let service = &face.service;
    // A runtime that keeps no teams has none.
    let Ok(kept) = service.runtime().workflows(service.tenant()) else { return Ok(Vec::new()) };
    let teams = kept.list().await.map_err(runtime::Error::from)?;
    Ok(teams.iter().map(wire::team_assistant).collect())
}

/// Returns whether a graph is the star or a team of the tenant.
async fn is_known(face: &Face, graph: &str) -> Result<bool, Refusal> {
    let is_team = |team: &Assistant| team.graph == graph;
    Ok(wire::is_graph(graph) || of_teams(face).await?.iter().any(is_team))
}

async fn found(face: &Face, id: &str) -> Result<Assistant, Refusal> {
    let missing = || Refusal::missing(format!("Assistant with ID {id} not found"));
    if wire::is_graph(id) {
        return Ok(wire::default_assistant(id, face.since));
    }
    if let Some(team) = of_teams(face).await?.into_iter().find(|team| team.graph == id) {
        return Ok(team);
    }
    let id = Uuid::parse_str(id)
        .map_err(|_| Refusal::invalid("Invalid assistant ID: must be a UUID"))?;
    by_id(face, id).await?.ok_or_else(missing)
}

pub(super) async fn get(
    State(face): State<Face>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    Ok(Json(wire::shown_assistant(&found(&face, &id).await?)))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Create {
    assistant_id: Option<Uuid>,
    graph_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    config: Option<Value>,
    context: Option<Value>,
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
    if_exists: Option<String>,
}

pub(super) async fn create(State(face): State<Face>, body: Body) -> Result<Json<Value>, Refusal> {
    let create: Create = body.read()?;
    let graph =
        create.graph_id.ok_or_else(|| Refusal::invalid("\"graph_id\" is a required property"))?;
    if !is_known(&face, &graph).await? {
        return Err(Refusal::missing(format!(
            "Graph '{graph}' not found. Available graphs: {GRAPH}"
        )));
    }
    let id = create.assistant_id.unwrap_or_else(Uuid::new_v4);
    if let Some(there) = by_id(&face, id).await? {
        return match create.if_exists.as_deref() {
            Some("do_nothing") => Ok(Json(wire::shown_assistant(&there))),
            _ => {
                Err(Refusal(StatusCode::CONFLICT, format!("Assistant with ID {id} already exists")))
            }
        };
    }
    let config = object(create.config, "config")?;
    let context = create.context.filter(|context| !context.is_null());
    let context =
        context.or_else(|| config.get("configurable").cloned()).unwrap_or_else(|| json!({}));
    let now = clock::now();
    let assistant = Assistant {
        id,
        version: 1,
        graph,
        name: create.name.unwrap_or_else(|| "Untitled".into()),
        description: create.description,
        config,
        context,
        metadata: object(create.metadata, "metadata")?,
        created_at: now,
        updated_at: now,
    };
    face.service.kept().put_assistant(&assistant).await?;
    Ok(Json(wire::shown_assistant(&assistant)))
}

pub(super) async fn update(
    State(face): State<Face>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let change: Create = body.read()?;
    let now = found(&face, &id).await?;
    if face.service.kept().assistant(now.id).await?.is_none() {
        let why = "the assistant that a graph has by itself cannot be changed; create another one";
        return Err(Refusal(StatusCode::CONFLICT, why.into()));
    }
    let newest = face.service.kept().assistant_versions(now.id).await?;
    let version = newest.first().map_or(1, |one| one.version) + 1;
    let changed = Assistant {
        version,
        graph: change.graph_id.unwrap_or(now.graph),
        name: change.name.unwrap_or(now.name),
        description: change.description.or(now.description),
        config: change.config.unwrap_or(now.config),
        context: change.context.unwrap_or(now.context),
        metadata: merged(now.metadata, change.metadata),
        updated_at: clock::now(),
        ..now
    };
    if !is_known(&face, &changed.graph).await? {
        return Err(Refusal::missing(format!("Graph '{}' not found", changed.graph)));
    }
    face.service.kept().put_assistant(&changed).await?;
    Ok(Json(wire::shown_assistant(&changed)))
}

fn merged(mut there: Value, given: Option<Value>) -> Value {
    if let (Some(there), Some(Value::Object(given))) = (there.as_object_mut(), given) {
        there.extend(given);
    }
    there
}

pub(super) async fn delete(
    State(face): State<Face>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    let assistant = found(&face, &id).await?;
    if face.service.kept().delete_assistant(assistant.id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        let why = "the assistant that a graph has by itself cannot be deleted";
        Err(Refusal(StatusCode::CONFLICT, why.into()))
    }
}

/// Which versions of an assistant are listed.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
    limit: Option<usize>,
    offset: Option<usize>,
}

pub(super) async fn versions(
    State(face): State<Face>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<Vec<Value>>, Refusal> {
    let which: Which = body.read()?;
    let wanted = object(which.metadata, "metadata")?;
    let assistant = found(&face, &id).await?;
    let mut all = face.service.kept().assistant_versions(assistant.id).await?;
    if all.is_empty() {
        all.push(assistant);
    }
    all.retain(|one| has_all(&one.metadata, &wanted));
    let page = all.iter().skip(which.offset.unwrap_or(0));
    let page = page.take(which.limit.unwrap_or(10).clamp(1, MOST));
    Ok(Json(page.map(wire::shown_assistant).collect()))
}

/// Returns whether metadata has all fields that are wanted of it.
pub(super) fn has_all(metadata: &Value, wanted: &Value) -> bool {
    let mut wanted = wanted.as_object().into_iter().flatten();
    wanted.all(|(key, value)| metadata.get(key) == Some(value))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Choose {
    version: u32,
}

pub(super) async fn choose(
    State(face): State<Face>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let version = body.read::<Choose>()?.version;
    let assistant = found(&face, &id).await?;
    if !face.service.kept().choose_assistant(assistant.id, version).await? {
        return Err(Refusal::missing(format!("Assistant {id} has no version: {version}")));
    }
    get(State(face), Path(id)).await
}

/// Returns the agents of a team.
async fn agents_of(face: &Face, team: &str) -> Result<Vec<String>, Refusal> {
    let service = &face.service;
    let kept = service.runtime().workflows(service.tenant())?;
    let team = runtime::find_team(&kept, team).await?.team;
    Ok(team.design.agents.into_iter().map(|agent| agent.name).collect())
}

/// Draws the star: the supervisor in the middle, the agents that there are now around it.
pub(super) async fn graph(
    State(face): State<Face>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let graph = found(&face, &id).await?.graph;
    let agents: Vec<String> = match graph.strip_prefix(TEAM_PREFIX) {
        Some(name) => agents_of(&face, name).await?,
        None => {
            face.service.runtime().agents().list().into_iter().map(|agent| agent.name).collect()
        }
    };
    let node = |name: &str| json!({ "id": name, "type": "runnable", "data": { "name": name } });
    let edge = |source: &str, target: &str| json!({ "source": source, "target": target });
    let chosen = |source: &str, target: &str| json!({ "source": source, "target": target, "conditional": true });
    let [preprocess, supervisor, qa] = node_names();
    let mut nodes = vec![node("__start__"), node(preprocess), node(supervisor)];
    let mut edges = vec![edge("__start__", preprocess), edge(preprocess, supervisor)];
    for agent in &agents {
        nodes.push(node(agent));
        edges.push(chosen(supervisor, agent));
        edges.push(edge(agent, supervisor));
    }
    nodes.push(node(qa));
    nodes.push(json!({ "id": END }));
    edges.push(chosen(supervisor, qa));
    edges.push(edge(qa, END));
    Ok(Json(json!({ "nodes": nodes, "edges": edges })))
}

pub(super) async fn schemas(
    State(face): State<Face>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    Ok(Json(wire::schemas(&found(&face, &id).await?.graph)))
}

pub(super) async fn subgraphs(
    State(face): State<Face>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    found(&face, &id).await?;
    Ok(Json(json!({})))
}

pub(super) async fn subgraphs_of(
    State(face): State<Face>,
    Path((id, _)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    subgraphs(State(face), Path(id)).await
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<Create>("post /assistants");
    forms.body::<Create>("patch /assistants/{id}");
    forms.body::<Which>("post /assistants/{id}/versions");
    forms.body::<Choose>("post /assistants/{id}/latest");
}
