//! Who did what, for those who manage.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use perihelion_people::{AuditQuery, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::http::{JsonResult, Query};
use perihelion_service::Service;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    thread: Option<Uuid>,
    before: Option<DateTime<Utc>>,
    limit: Option<u32>,
}

pub(super) async fn list(State(service): State<Service>, Query(which): Query<Which>) -> JsonResult {
    service.permit(Scope::Manage)?;
    let Which { thread, before, limit } = which;
    let wanted = AuditQuery { thread, before, limit };
    let entries = service.people().audit(service.tenant(), &wanted).await?;
    Ok(Json(json!({ "entries": entries })))
}
