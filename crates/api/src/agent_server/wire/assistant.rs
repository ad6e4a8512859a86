//! Assistants in the clients' format: a graph, with a configuration.

use serde_json::{Value, json};

use perihelion_runtime::{AboutGraph, KeptTeam};
pub(crate) use perihelion_service::assistant_of as id_of;
use perihelion_service::kept::Assistant;

/// Returns the assistant that a graph has by itself.
pub(crate) fn default_assistant(graph: &str, since: chrono::DateTime<chrono::Utc>) -> Assistant {
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

/// Returns the assistant that a team is.
pub(crate) fn team_assistant(kept: &KeptTeam) -> Assistant {
    let graph = kept.team.agent_name();
    Assistant {
        version: kept.team.version,
        description: Some(kept.team.design.description.clone()),
        metadata: json!({ "created_by": "system", "team": kept.team.design.name }),
        ..default_assistant(&graph, kept.created_at)
    }
}

/// Returns the assistant that a graph of the program's own is.
pub(crate) fn graph_assistant(
    about: &AboutGraph,
    since: chrono::DateTime<chrono::Utc>,
) -> Assistant {
    Assistant { description: about.description.clone(), ..default_assistant(&about.name, since) }
}

/// Shows an assistant.
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

/// Shows the forms of input, output and state of a graph of the program's own.
pub(crate) fn schemas_of(about: &AboutGraph) -> Value {
    json!({
        "graph_id": about.name,
        "input_schema": about.input_schema,
        "output_schema": about.output_schema,
        "state_schema": about.state_schema,
        "config_schema": {},
        "context_schema": {},
    })
}

/// Shows the forms of input, output and state.
pub(crate) fn schemas(graph: &str) -> Value {
    let message = json!({
        "type": "object",
        "properties": { "type": { "type": "string" }, "content": {}, "id": { "type": "string" } },
    });
    let messages = json!({ "title": "Messages", "type": "array", "items": message });
    json!({
        "graph_id": graph,
        "input_schema": {
            "title": format!("{graph}_input"),
            "type": "object",
            "properties": {
                "messages": messages,
                "question": { "type": "string" },
                "context": { "type": "object", "additionalProperties": { "type": "string" } },
                "prefer_agents": { "type": "array", "items": { "type": "string" } },
                "disable_agents": { "type": "array", "items": { "type": "string" } },
                "team": { "type": "string" },
                "max_turns": { "type": "integer" },
                "include_data": { "type": "boolean" },
                "trace": { "type": "boolean" },
                "system_prompt": { "type": "string" },
            },
        },
        "output_schema": {
            "title": format!("{graph}_output"),
            "type": "object",
            "properties": { "messages": messages, "answer": { "type": ["string", "null"] } },
        },
        "state_schema": {
            "title": format!("{graph}_state"),
            "type": "object",
            "properties": {
                "messages": messages,
                "input_request": { "type": "string" },
                "plan": { "type": "array", "items": { "type": "string" } },
                "tasks": { "type": "array" },
                "results": { "type": "array" },
                "citations": { "type": "array" },
                "answer": { "type": ["string", "null"] },
            },
        },
        "config_schema": {},
        "context_schema": { "type": "object", "additionalProperties": { "type": "string" } },
    })
}
