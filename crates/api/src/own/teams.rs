//! Teams: listed, designed, kept, deleted.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perihelion_people::Scope;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{Body, JsonResult, Query, Refusal, StatusResult};
use perihelion_runtime::{Error, KeptTeam, TeamDesign, find_team};
use perihelion_service::Service;

/// The basis of a team: a goal for the architect, or a design.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Wanted {
    goal: Option<String>,
    /// Whether the architect's design is stored at once.
    save: bool,
    design: Option<TeamDesign>,
}

fn shown(kept: &KeptTeam) -> Value {
    json!({
        "name": kept.team.design.name,
        "version": kept.team.version,
        "agent": kept.team.agent_name(),
        "design": kept.team.design,
        "mermaid": kept.team.design.mermaid(),
        "created_at": kept.created_at,
    })
}

pub(super) async fn list(service: State<Service>) -> JsonResult {
    let teams =
        service.runtime().team_store(service.tenant())?.list().await.map_err(Error::from)?;
    Ok(Json(teams.iter().map(shown).collect()))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Which {
    /// None: the newest.
    version: Option<u32>,
}

pub(super) async fn get(
    service: State<Service>,
    Path(name): Path<String>,
    Query(which): Query<Which>,
) -> JsonResult {
    let newest = found(&service, &name).await?;
    let Some(version) = which.version else { return Ok(Json(shown(&newest))) };
    let store = service.runtime().team_store(service.tenant())?;
    let earlier = store.find(&newest.team.design.name, Some(version)).await.map_err(Error::from)?;
    let missing = || Refusal::missing(format!("team {name} has no version {version}"));
    Ok(Json(shown(&earlier.ok_or_else(missing)?)))
}

pub(super) async fn create(service: State<Service>, Body(wanted): Body<Wanted>) -> JsonResult {
    let save = wanted.save || wanted.design.is_some();
    if save {
        service.permit(Scope::Manage)?;
    }
    let design = match (wanted.goal, wanted.design) {
        (Some(goal), None) if !goal.trim().is_empty() => service.design_team(&goal).await?,
        (None, Some(design)) => design,
        _ => return Err(Refusal::invalid("send either a goal or a design")),
    };
    if save {
        let team = service.runtime().save_team(service.tenant(), design).await?;
        return Ok(Json(shown(&found(&service, &team.design.name).await?)));
    }
    let mermaid = design.mermaid();
    let name = &design.name;
    Ok(Json(json!({ "name": name, "version": null, "design": design, "mermaid": mermaid })))
}

pub(super) async fn delete(service: State<Service>, Path(name): Path<String>) -> StatusResult {
    service.permit(Scope::Manage)?;
    let team = found(&service, &name).await?.team;
    let kept = service.runtime().team_store(service.tenant())?;
    kept.delete(&team.design.name).await.map_err(Error::from)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn found(service: &Service, name: &str) -> Result<KeptTeam, Refusal> {
    let kept = service.runtime().team_store(service.tenant())?;
    find_team(&kept, name).await.map_err(|error| match error {
        Error::NoTeam { .. } => Refusal::missing(error.to_string()),
        other => other.into(),
    })
}
