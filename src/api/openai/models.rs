//! The models there are: each graph is one.

use axum::Json;
use axum::extract::Path;
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::swarm::GRAPH;

fn shown(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 1_767_225_600, "owned_by": "perihelion" })
}

pub(super) async fn list() -> Json<Value> {
    Json(json!({ "object": "list", "data": [shown(GRAPH)] }))
}

pub(super) async fn get(Path(model): Path<String>) -> Result<Json<Value>, Refusal> {
    check(&model)?;
    Ok(Json(shown(&model)))
}

/// Refuses a model that there is none of.
pub(super) fn check(model: &str) -> Result<(), Refusal> {
    match model == GRAPH {
        true => Ok(()),
        false => {
            Err(Refusal::missing(format!("The model `{model}` does not exist; there is: {GRAPH}")))
        }
    }
}
