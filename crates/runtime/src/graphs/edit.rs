//! Edits a thread at its head, or at an earlier step.

use super::Edit;
use super::typed::{Typed, read_update};
use crate::Error;
use perihelion_engine::checkpoint::{StepKind, ThreadStatus, forked_to, read_delta};
use perihelion_engine::graph::{END, State, Target};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{AfterEdit, INPUT};
use serde_json::Value;

impl<S: State> Typed<S> {
    /// Edits a thread's state as if a node had written it; without a node, as if the one had that ran last.
    ///
    /// If there is no next node either and the thread is between two steps, the nodes run that would have run without
    /// the edit.
    pub(super) async fn edited(&self, thread: ThreadId, edit: Edit<'_>) -> Result<u64, Error> {
        let Edit { update, as_node, goto, at, mut head } = edit;
        let update = read_update::<S>(&update)?;
        if let Some(at) = at {
            if at < self.runner.store().info(thread).await?.head {
                let node = self.writer(thread, as_node, Some(at)).await?;
                let after = as_node.map_or(AfterEdit::Unchanged, |_| AfterEdit::Routes);
                self.runner.check_update(thread, at, update.clone(), &node, &after).await?;
            }
            let returned = self.runner.go_back(thread, at).await?;
            head = head.map(|_| returned.seq);
        }
        let node = self.writer(thread, as_node, None).await?;
        let target = |to: &str| if to == END { Target::End } else { Target::node(to) };
        let goto = goto.unwrap_or_default();
        let goto: Vec<Target> = goto.iter().filter_map(Value::as_str).map(target).collect();
        let after = if !goto.is_empty() {
            AfterEdit::Goto(goto)
        } else if as_node.is_none() && self.stands_between_steps(thread).await? {
            AfterEdit::Unchanged
        } else {
            AfterEdit::Routes
        };
        Ok(self.runner.update_state_and_go(thread, head, update, &node, after).await?.seq)
    }

    /// Returns the author node of an edit: the named one, or the one that ran last at a step, or at the head.
    async fn writer(
        &self,
        thread: ThreadId,
        as_node: Option<&str>,
        at: Option<u64>,
    ) -> Result<String, Error> {
        match as_node {
            Some("__start__") => Ok(INPUT.to_owned()),
            Some(node) => Ok(node.to_owned()),
            None => self.last_node(thread, at.map(|at| at.saturating_add(1))).await,
        }
    }

    /// Returns whether a thread pauses, or was just returned to a step or edited: then its next step has not started.
    async fn stands_between_steps(&self, thread: ThreadId) -> Result<bool, Error> {
        let store = self.runner.store();
        let info = store.info(thread).await?;
        if info.status == ThreadStatus::Interrupted {
            return Ok(self.runner.open_interrupts(thread).await?.is_empty());
        }
        let newest = store.history(thread, None, 1).await?.pop();
        let is_still =
            newest.is_some_and(|row| matches!(row.kind, StepKind::Fork | StepKind::Edit));
        Ok(is_still && store.effects(thread, Some(info.head + 1)).await?.is_empty())
    }

    /// Returns the node that ran last in a thread, or last before a step.
    async fn last_node(&self, thread: ThreadId, before: Option<u64>) -> Result<String, Error> {
        let mut before = before;
        loop {
            let row = self.runner.store().history(thread, before, 1).await?.pop();
            let Some(row) = row else { return Ok(INPUT.to_owned()) };
            let written = read_delta::<S>(thread, &row)?;
            match forked_to(&row, &written) {
                // It stands where that step left it.
                Some(to) => before = Some(to + 1),
                None => {
                    return Ok(written
                        .last()
                        .map_or_else(|| INPUT.to_owned(), |one| one.node.clone()));
                }
            }
        }
    }
}
