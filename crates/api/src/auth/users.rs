//! The users of a tenant, for those who manage it.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perihelion_people::Scope;
use serde_json::json;

use super::accounts;
use crate::http::{JsonResult, Refusal};
use perihelion_service::Service;

pub(super) async fn list(State(service): State<Service>) -> JsonResult {
    service.permit(Scope::Manage)?;
    Ok(Json(json!({ "users": accounts(&service).users().await? })))
}

/// Shuts a user out and ends the runs of their threads; nobody locks themselves out by it.
pub(super) async fn disable(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    service.permit(Scope::Manage)?;
    if service.who().user == name {
        let why = "you cannot disable yourself; ask another user with the scope manage";
        return Err(Refusal(StatusCode::CONFLICT, why.to_owned()));
    }
    accounts(&service).disable_user(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}
