//! The questions of turns, read from single steps: a state is as large as its whole conversation.

use super::{Result, Service, ThreadView};
use perihelion_engine::checkpoint::{StepKind, read_delta};
use perihelion_star::{GRAPH, GraphState};

/// Newest steps that are looked through for the question of a turn.
const NEWEST: u32 = 16;

impl Service {
    /// Returns the question of the turn that a thread is at; `None` for a graph that this program does not have.
    pub async fn question_of(&self, view: &ThreadView) -> Result<Option<String>> {
        let info = &view.info;
        let Ok(graph) = self.runtime().graph(&info.graph) else { return Ok(None) };
        if let Some(state) = &view.state {
            return Ok(Some(state.star().input_request.clone()));
        }
        if info.graph != GRAPH {
            return Ok(Some(String::new()));
        }
        for row in self.runtime().store().history(info.id, Some(info.head + 1), NEWEST).await? {
            if row.kind == StepKind::Fork {
                break;
            }
            let mut newest_first = read_delta::<GraphState>(info.id, &row)?.into_iter().rev();
            if let Some(question) = newest_first.find_map(|one| one.update.input_request) {
                return Ok(Some(question));
            }
        }
        Ok(Some(graph.state(info.id, None).await?.star().input_request.clone()))
    }
}
