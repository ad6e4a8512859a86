//! Takes an input: a step of its own that leads to the entry nodes.

use std::collections::BTreeMap;

use super::outcome::Error;
use super::run::Runner;
use super::snapshots::Snapshots;
use super::writer::{Step, Writer};
use crate::checkpoint::{Restored, StepKind};
use crate::graph::{EngineError, Finished, Frontier, Graph, Position, State, Written, merge};

/// The node name under which inputs are stored.
pub const INPUT: &str = "__input__";

impl<S: State> Runner<S> {
    /// Commits the input as a step that leads to the entry nodes.
    pub(super) async fn take_input(
        &self,
        restored: &Restored<S>,
        position: &mut Position<S>,
        input: S::Update,
        writer: &mut Writer,
        snapshots: &mut Snapshots,
    ) -> Result<(), Error> {
        let (written, texts) = Written::<S>::new(INPUT, input, None);
        // What a subgraph is given comes from the steps above it.
        if restored.info.root.is_none() {
            self.check_texts(restored.info.id, &written, &texts).await?;
        }
        let finished = vec![Finished { written, entry: None }];
        let merged = merge(self.graph(), &mut position.state, finished, BTreeMap::new())?;
        self.check_room(restored, merged.delta.len(), &position.state)?;
        let (frontier, encoded) = entry_frontier(self.graph())?;
        let seq = position.head + 1;
        let size = merged.delta.len();
        let step = Step {
            seq,
            kind: StepKind::Input,
            delta: merged.delta,
            frontier: encoded,
            clears_pending: false,
            texts,
        };
        writer.write_now(step).await?;
        if snapshots.is_due(size).await {
            snapshots.write(self.store(), seq, &position.state);
        }
        position.head = seq;
        position.frontier = frontier;
        position.done.clear();
        Ok(())
    }
}

/// Makes the frontier that an input starts.
pub(super) fn entry_frontier<S: State>(graph: &Graph<S>) -> Result<(Frontier, Vec<u8>), Error> {
    encoded(Frontier::of(graph.entry().iter().map(String::as_str)))
}

/// Returns a frontier with its form in the store.
pub(super) fn encoded(frontier: Frontier) -> Result<(Frontier, Vec<u8>), Error> {
    let encoded = serde_json::to_vec(&frontier).map_err(|error| EngineError::Encode {
        node: INPUT.to_owned(),
        reason: error.to_string(),
    })?;
    Ok((frontier, encoded))
}
