//! Assistants in the clients' format: a graph, with a configuration.

use serde_json::{Value, json};

use perihelion_runtime::AboutGraph;
use perihelion_service::kept::Assistant;

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
