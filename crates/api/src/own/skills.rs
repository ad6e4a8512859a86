//! What agents learned: listed, found by words, forgotten.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kept::{Kept, refused};
use crate::http::{JsonResult, Query, Refusal};
use perihelion_engine::clock;
use perihelion_runtime::Skill;

/// Skills that a search gives.
const FOUND: usize = 50;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Words {
    /// None: all skills.
    text: Option<String>,
}

fn shown(skill: &Skill) -> Value {
    let mut shown = json!(skill);
    shown["score"] = json!(skill.score(clock::now()));
    shown["solution"] = json!(skill.solution());
    shown
}

pub(super) async fn list(State(kept): State<Kept>, Query(words): Query<Words>) -> JsonResult {
    let skills = kept.skills().await?;
    let found = match words.text.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => skills.search(kept.tenant(), text, FOUND).await,
        None => skills.list(kept.tenant()).await,
    };
    let shown: Vec<Value> = found.map_err(refused)?.iter().map(shown).collect();
    Ok(Json(json!({ "skills": shown })))
}

pub(super) async fn get(State(kept): State<Kept>, Path(id): Path<String>) -> JsonResult {
    let skill = kept.skills().await?.show(kept.tenant(), &id).await.map_err(refused)?;
    Ok(Json(shown(&skill)))
}

pub(super) async fn forget(
    State(kept): State<Kept>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    kept.skills().await?.forget(kept.tenant(), &id).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}
