//! The team that a thread's turns are given to.

use uuid::Uuid;

use super::agent_server::{Refusal, assistant_of};
use crate::runtime::{self, KeptTeam};
use crate::service::{Service, ThreadView};
use crate::swarm::{GRAPH, TEAM_PREFIX};

/// Finds a team of the tenant's, by its name with or without the prefix, and returns the name of its agent.
///
/// # Errors
/// [`Refusal`] with the nearest name where there is none.
pub(super) async fn named(service: &Service, name: &str) -> Result<String, Refusal> {
    let kept = service.runtime().workflows(service.tenant())?;
    Ok(runtime::find_team(&kept, name).await?.team.agent_name())
}

/// Returns the teams of the tenant; none where no teams are kept.
pub(super) async fn all(service: &Service) -> Result<Vec<KeptTeam>, Refusal> {
    match service.runtime().workflows(service.tenant()) {
        Ok(kept) => Ok(kept.list().await.map_err(runtime::Error::from)?),
        Err(runtime::Error::NoTeams) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the team whose thread it is, after a step or where it stands: the one that its last turn was given to, or for
/// a thread without one the team that it was made for.
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
        Some(state) => state.preferences.team.clone(),
        None => {
            let noted = view.meta.metadata["graph_id"].as_str();
            noted.filter(|graph| graph.starts_with(TEAM_PREFIX)).map(str::to_owned)
        }
    })
}

/// Returns the assistant that a team or the star is, and notes it of a thread that was run by another one last.
pub(super) async fn noted(
    service: &Service,
    view: &ThreadView,
    team: Option<&str>,
) -> Result<Uuid, Refusal> {
    let graph = team.unwrap_or(GRAPH);
    let noted = &view.meta.metadata;
    let assistant = noted["assistant_id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    if let Some(assistant) = assistant.filter(|_| noted["graph_id"] == graph) {
        return Ok(assistant);
    }
    let assistant = assistant_of(graph);
    service.note_assistant(view.info.id, graph, assistant).await?;
    Ok(assistant)
}
