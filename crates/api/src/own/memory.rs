//! What is remembered of a user, for the user to see, correct and forget.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perihelion_people::Principal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::kept::{Kept, refused};
use crate::http::{Body, JsonResult, Query, Refusal};
use perihelion_engine::clock;
use perihelion_runtime::{MemoryKind, Scope};

/// Where what a person enters comes from.
const SOURCE: &str = "user";

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Whose {
    /// The user, as a request or `run --user` names one; who is a user sees their own alone.
    user: String,
}

impl Whose {
    fn scope(&self, who: &Principal) -> Result<Scope, Refusal> {
        match who.acting_as(Some(&self.user))? {
            None => Err(Refusal::invalid("pass the user whose memories to use: ?user=NAME")),
            Some(user) => {
                Scope::new(&who.tenant, &user).map_err(|error| Refusal::invalid(error.to_string()))
            }
        }
    }
}

pub(super) async fn list(State(kept): State<Kept>, Query(whose): Query<Whose>) -> JsonResult {
    let entries = kept.memory().await?.list(&whose.scope(kept.who())?).await.map_err(refused)?;
    Ok(Json(json!({ "memories": entries })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    value: String,
    /// Whether it is a wish, such as a tone or a language; a fact by default.
    #[serde(default)]
    preference: bool,
}

pub(super) async fn remember(
    State(kept): State<Kept>,
    Path(key): Path<String>,
    Query(whose): Query<Whose>,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let Given { value, preference } = body.read()?;
    let kind = if preference { MemoryKind::Preference } else { MemoryKind::Fact };
    let scope = whose.scope(kept.who())?;
    let entry = (kind, key.as_str(), value.as_str());
    kept.memory().await?.set(&scope, entry, SOURCE, clock::now()).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn forget(
    State(kept): State<Kept>,
    Path(key): Path<String>,
    Query(whose): Query<Whose>,
) -> Result<StatusCode, Refusal> {
    kept.memory().await?.forget(&whose.scope(kept.who())?, &key).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}
