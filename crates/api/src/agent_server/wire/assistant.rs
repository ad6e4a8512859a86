//! Assistants in the clients' format: a graph, with a configuration.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use perihelion_runtime::{AboutGraph, KeptTeam};
pub(crate) use perihelion_service::assistant_of as id_of;
use perihelion_service::kept::Assistant;

pub(crate) fn graph_assistant(about: &AboutGraph, since: DateTime<Utc>) -> Assistant {
    Assistant { description: about.description.clone(), ..default_assistant(&about.name, since) }
}

fn default_assistant(graph: &str, since: DateTime<Utc>) -> Assistant {
    Assistant {
        id: id_of(graph),
        version: 1,
        graph: graph.to_owned(),
        name: graph.to_owned(),
        description: None,
        config: json!({}),
        context: json!({}),
        metadata: json!({ "created_by": "system" }),
        created_at: since,
        updated_at: since,
    }
}

pub(crate) fn team_assistant(kept: &KeptTeam) -> Assistant {
    let graph = kept.team.agent_name();
    Assistant {
        version: kept.team.version,
        description: Some(kept.team.design.description.clone()),
        metadata: json!({ "created_by": "system", "team": kept.team.design.name }),
        ..default_assistant(&graph, kept.created_at)
    }
}

pub(crate) fn shown(assistant: &Assistant) -> Value {
    json!({
        "assistant_id": assistant.id,
        "graph_id": assistant.graph,
        "config": assistant.config,
        "context": assistant.context,
        "metadata": assistant.metadata,
        "name": assistant.name,
        "created_at": assistant.created_at,
        "updated_at": assistant.updated_at,
        "version": assistant.version,
        "description": assistant.description,
    })
}

/// Shows the schemas of a graph, or of a team under its own name.
pub(crate) fn schemas(graph: &str, about: &AboutGraph) -> Value {
    json!({
        "graph_id": graph,
        "input_schema": about.input_schema,
        "output_schema": about.output_schema,
        "state_schema": about.state_schema,
        "config_schema": about.config_schema,
        "context_schema": about.context_schema,
    })
}
