//! The team that a thread's turns are given to.

use uuid::Uuid;

use crate::agent_server::assistant_of;
use crate::http::Refusal;
use perihelion_runtime::{self as runtime, KeptTeam};
use perihelion_service::{Service, ThreadView};
use perihelion_star::{GRAPH, TEAM_PREFIX};

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
        Some(state) => state.star().preferences.team.clone(),
        None => {
            let noted = view.meta.metadata["graph_id"].as_str();
            noted.filter(|graph| graph.starts_with(TEAM_PREFIX)).map(str::to_owned)
        }
    })
}

/// Returns the assistant that a team or the star is: the one that a thread was run by last, where it is of that graph.
pub(super) fn assistant(view: &ThreadView, team: Option<&str>) -> Uuid {
    let graph = team.unwrap_or(GRAPH);
    noted(view, graph).unwrap_or_else(|| assistant_of(graph))
}

/// Notes the assistant of a thread that was run by one of another graph before.
pub(super) async fn note(
    service: &Service,
    view: &ThreadView,
    team: Option<&str>,
) -> Result<(), Refusal> {
    let graph = team.unwrap_or(GRAPH);
    if noted(view, graph).is_none() {
        service.note_assistant(view.info.id, graph, assistant_of(graph)).await?;
    }
    Ok(())
}

/// Returns the assistant that is noted of a thread, where it is of this graph.
fn noted(view: &ThreadView, graph: &str) -> Option<Uuid> {
    let noted = &view.meta.metadata;
    let assistant = noted["assistant_id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    assistant.filter(|_| noted["graph_id"] == graph)
}
