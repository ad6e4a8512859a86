//! Citations of what a stage's model wrote: those that name nothing are removed, counted and told.

use super::stage::Stage;
use crate::citing::{CheckedCitations, check_citations};
use perihelion_engine::graph::State;
use perihelion_settings::metrics;

impl<W: State> Stage<W> {
    /// Removes citations that name none of so many passages.
    pub fn check_citations(&self, written: &str, passages: usize) -> CheckedCitations {
        let checked = check_citations(written, passages);
        let removed = checked.removed;
        if removed > 0 {
            self.progress(format!("removed {removed} citation(s) that named no passage"));
            metrics::citations_removed(&self.job.agent, removed);
        }
        checked
    }
}
