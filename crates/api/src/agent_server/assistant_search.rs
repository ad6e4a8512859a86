//! Searches assistants: by graph, name and metadata.

use std::cmp::Ordering;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::assistants::{MOST, has_all, of_graphs, of_teams};
use super::threads::conditions;
use super::{AppState, Refusal, page, wire};
use crate::http::{Body, ResponseResult};
use perihelion_service::kept::{Assistant, AssistantFilter};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Search {
    graph_id: Option<String>,
    name: Option<String>,
    metadata: Option<Map<String, Value>>,
    limit: Option<usize>,
    offset: Option<u32>,
    sort_by: Option<SortBy>,
    sort_order: Option<wire::SortOrder>,
    select: Option<Vec<String>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SortBy {
    AssistantId,
    GraphId,
    Name,
    CreatedAt,
    UpdatedAt,
}

impl SortBy {
    fn compare(self, one: &Assistant, other: &Assistant) -> Ordering {
        match self {
            Self::AssistantId => one.id.cmp(&other.id),
            Self::GraphId => one.graph.cmp(&other.graph),
            Self::Name => one.name.cmp(&other.name),
            Self::CreatedAt => one.created_at.cmp(&other.created_at),
            Self::UpdatedAt => one.updated_at.cmp(&other.updated_at),
        }
    }
}

async fn matching(app: &AppState, search: &Search) -> Result<Vec<Assistant>, Refusal> {
    let metadata = conditions(search.metadata.clone(), "metadata")?;
    let filter = AssistantFilter {
        graph: search.graph_id.clone(),
        name: search.name.clone(),
        metadata: Some(metadata.clone()).filter(|wanted| *wanted != json!({})),
    };
    let fits = |one: &Assistant| {
        search.graph_id.as_ref().is_none_or(|graph| *graph == one.graph)
            && search
                .name
                .as_ref()
                .is_none_or(|name| one.name.to_lowercase().contains(&name.to_lowercase()))
            && has_all(&one.metadata, &metadata)
    };
    let mut all: Vec<Assistant> =
        of_graphs(app).into_iter().chain(of_teams(app).await?).filter(fits).collect();
    all.extend(app.service.kept().assistants(&filter).await?);
    if let Some(by) = search.sort_by {
        let is_ascending = search.sort_order == Some(wire::SortOrder::Asc);
        all.sort_by(|one, other| {
            let order = by.compare(one, other);
            if is_ascending { order } else { order.reverse() }
        });
    }
    Ok(all)
}

pub(super) async fn search(app: State<AppState>, Body(search): Body<Search>) -> ResponseResult {
    let all = matching(&app, &search).await?;
    let limit = search.limit.unwrap_or(10).clamp(1, MOST);
    let offset = search.offset.unwrap_or(0);
    let fields = wire::Fields(search.select.unwrap_or_default());
    let shown = all.iter().skip(offset as usize).take(limit).map(wire::shown_assistant);
    Ok(page(shown.map(|shown| fields.only(shown)).collect(), offset, all.len() as u64))
}

pub(super) async fn count(
    app: State<AppState>,
    Body(search): Body<Search>,
) -> Result<Json<usize>, Refusal> {
    Ok(Json(matching(&app, &search).await?.len()))
}
