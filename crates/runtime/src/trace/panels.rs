//! The analyses behind an analyst's answers, as the agents stored them next to their results.

use serde::Serialize;
use serde_json::Value;

use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::StateView;
use perihelion_star::GraphState;
use perihelion_telemetry::{About, Span};

/// How the artifact of an analysis ends.
const ANALYSIS: &str = "/analysis.json";

/// The analysis behind one result: grounding pack, draft, guard, attempts, triage, preview, chart.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    pub result: String,
    pub agent: String,
    /// The artifact that holds it whole.
    pub artifact: String,
    pub panels: Value,
}

/// Returns the analyses behind the results of a trace; `None` if the state was deleted.
///
/// # Errors
/// [`checkpoint::Error::Blob`] if one of them cannot be read, and any other error of the store.
pub(super) async fn analyses(
    store: &dyn Store,
    thread: ThreadId,
    spans: &[Span],
) -> Result<Vec<Analysis>, checkpoint::Error> {
    let worked: Vec<(&str, &str)> = spans
        .iter()
        .filter_map(|span| match &span.about {
            About::Agent { agent, task: Some(task), .. } => Some((agent.as_str(), task.as_str())),
            _ => None,
        })
        .collect();
    if worked.is_empty() {
        return Ok(Vec::new());
    }
    let Ok(view) = StateView::<GraphState>::read(store, thread, None).await else {
        return Ok(Vec::new());
    };
    let state = view.state;
    let results = (0..state.results.len()).filter_map(|at| state.results.get(at));
    let of_trace =
        results.filter(|result| worked.contains(&(result.agent.as_str(), result.task.as_str())));
    let mut analyses = Vec::new();
    for result in of_trace {
        let artifact = format!("{}{ANALYSIS}", result.id);
        let Some(kept) = state.global_state.get(&artifact) else { continue };
        let whole = kept.whole(store, thread, &artifact).await?;
        let Ok(panels) = serde_json::from_str(&whole) else { continue };
        let agent = result.agent.clone();
        let result = result.id.clone();
        analyses.push(Analysis { result, agent, artifact, panels });
    }
    Ok(analyses)
}
