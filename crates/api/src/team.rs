//! The teams of a tenant, and the one that a thread's turns are given to.

use uuid::Uuid;

use crate::http::Refusal;
use perihelion_runtime::{self as runtime, KeptTeam};
use perihelion_service::{Service, ThreadView};
use perihelion_star::TEAM_PREFIX;

/// Finds a team of the tenant's, by its name with or without the prefix, and returns the name of its agent.
pub(super) async fn named(service: &Service, name: &str) -> Result<String, Refusal> {
    let kept = service.runtime().team_store(service.tenant())?;
    Ok(runtime::find_team(&kept, name).await?.team.agent_name())
}

/// Returns the teams of the tenant; empty if teams are not stored.
pub(super) async fn all(service: &Service) -> Result<Vec<KeptTeam>, Refusal> {
    match service.runtime().team_store(service.tenant()) {
        Ok(kept) => Ok(kept.list().await.map_err(runtime::Error::from)?),
        Err(runtime::Error::NoTeams) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the team of a thread, after a step or at its head: the team of its last turn, or for a thread without one
/// the team that it was created for.
pub(super) async fn of_thread(
    service: &Service,
    view: &ThreadView,
    at: Option<u64>,
) -> Result<Option<String>, Refusal> {
    let state = match at {
        Some(at) if at > 0 && at != view.info.head => {
            Some(service.checkpoint(view.info.id, at).await?.state)
        }
        _ => view.state.clone(),
    };
    Ok(match state {
        Some(state) => state.star().preferences.team.clone(),
        None => {
            let noted = view.meta.metadata["graph_id"].as_str();
            noted.filter(|graph| graph.starts_with(TEAM_PREFIX)).map(str::to_owned)
        }
    })
}

/// Returns the assistant that ran a thread last, if it belongs to this graph or team.
pub(super) fn noted(view: &ThreadView, graph: &str) -> Option<Uuid> {
    let noted = &view.meta.metadata;
    let assistant = noted["assistant_id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    assistant.filter(|_| noted["graph_id"] == graph)
}
