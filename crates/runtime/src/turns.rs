//! Gives a thread a new turn however it stands, and edits where it stands.

use super::{Answer, Error, RunReport, Runtime};
use perihelion_engine::checkpoint::{self, StepKind, ThreadStatus, forked_to, read_delta};
use perihelion_engine::graph::{END, Target};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{self, AfterEdit, INPUT, RunOptions};
use perihelion_star::question::kind::CLARIFICATION;
use perihelion_star::{GraphState, GraphUpdate, Request};

impl Runtime {
    /// Makes a thread of a tenant for later turns; it is no error when the tenant has it already.
    ///
    /// # Errors
    /// [`checkpoint::Error::ThreadExists`] when another tenant has it; whatever the store reports.
    pub async fn create_for(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<(), Error> {
        let made = self.runner().create_for(tenant, thread, title).await?;
        if made.tenant == tenant {
            Ok(())
        } else {
            Err(checkpoint::Error::ThreadExists(thread).into())
        }
    }

    /// Checks a tenant's request as [`Runtime::take_turn`] would, without running anything.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn check_request(&self, tenant: &str, request: Request) -> Result<(), Error> {
        self.load_teams(tenant).await;
        request.into_input(&self.roster.names(tenant))?;
        Ok(())
    }

    /// Asks a thread a question however it stands: the answer to its one open clarification, or a new turn.
    ///
    /// What an unfinished turn still had to do is abandoned, and its questions with it.
    ///
    /// # Errors
    /// As [`Runtime::ask`]; [`Error::Store`] when somebody else holds the thread.
    pub async fn take_turn(
        &self,
        thread: ThreadId,
        request: Request,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let info = self.store().info(thread).await?;
        if info.status == ThreadStatus::Interrupted {
            let open = self.runner().open_interrupts(thread).await?;
            if let [one] = open.as_slice()
                && one.kind == CLARIFICATION
            {
                let answer = Answer::Message(request.question);
                return self.answer_and_continue(thread, Some(one.id), answer, options).await;
            }
        }
        if matches!(info.status, ThreadStatus::Idle | ThreadStatus::Busy | ThreadStatus::Queued) {
            match self.ask(thread, None, request.clone(), options.clone()).await {
                Err(Error::Run(runner::Error::Unfinished { .. })) => {}
                other => return other,
            }
        }
        let input = request.into_input(&self.roster.names(&info.tenant))?;
        self.runner().update_state(thread, input, INPUT).await?;
        let mut options = options;
        options.pauses.at_start = true;
        self.resume(thread, options).await
    }

    /// Makes a thread stand as it did at an earlier step, and returns its newest one then.
    ///
    /// # Errors
    /// As [`runner::Runner::go_back`].
    pub async fn go_back(&self, thread: ThreadId, to: u64) -> Result<u64, Error> {
        Ok(self.runner().go_back(thread, to).await?.seq)
    }

    /// Edits a thread's state as if a node had written it; without a node, as if the one had that ran last.
    ///
    /// `goto` names the nodes that run next; empty: those that the node leads to. Where no node is named either and the thread
    /// stands between two steps, those that would have run without the edit.
    ///
    /// # Errors
    /// As [`runner::Runner::update_state_and_go`].
    pub async fn edit(
        &self,
        thread: ThreadId,
        update: GraphUpdate,
        as_node: Option<&str>,
        goto: &[String],
    ) -> Result<u64, Error> {
        let node = self.writer(thread, as_node, None).await?;
        let goto: Vec<Target> = goto
            .iter()
            .map(|to| if to == END { Target::End } else { Target::node(to.as_str()) })
            .collect();
        let after = if !goto.is_empty() {
            AfterEdit::Goto(goto)
        } else if as_node.is_none() && self.stands_between_steps(thread).await? {
            AfterEdit::Unchanged
        } else {
            AfterEdit::Routes
        };
        let step = self.runner().update_state_and_go(thread, update, &node, after).await?.seq;
        self.bus().call(thread).await;
        Ok(step)
    }

    /// Edits a thread's state as it was after an earlier step, to which the thread goes back.
    ///
    /// An edit that is refused leaves the thread where it stood.
    ///
    /// # Errors
    /// As [`Runtime::go_back`] and [`Runtime::edit`].
    pub async fn edit_at(
        &self,
        thread: ThreadId,
        at: u64,
        update: GraphUpdate,
        as_node: Option<&str>,
    ) -> Result<u64, Error> {
        if at < self.store().info(thread).await?.head {
            let node = self.writer(thread, as_node, Some(at)).await?;
            let after = as_node.map_or(AfterEdit::Unchanged, |_| AfterEdit::Routes);
            self.runner().check_update(thread, at, update.clone(), &node, &after).await?;
        }
        self.go_back(thread, at).await?;
        self.edit(thread, update, as_node, &[]).await
    }

    /// Returns in whose name an edit is made: the node's that is named, or of the one that had run last at a step, or by now.
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

    /// Tells whether a thread pauses, or was just returned to a step or edited: then nothing of the next step was done.
    async fn stands_between_steps(&self, thread: ThreadId) -> Result<bool, Error> {
        let info = self.store().info(thread).await?;
        if info.status == ThreadStatus::Interrupted {
            return Ok(self.runner().open_interrupts(thread).await?.is_empty());
        }
        let newest = self.store().history(thread, None, 1).await?.pop();
        let is_still =
            newest.is_some_and(|row| matches!(row.kind, StepKind::Fork | StepKind::Edit));
        Ok(is_still && self.store().effects(thread, Some(info.head + 1)).await?.is_empty())
    }

    /// Returns the node that ran last in a thread, or last before a step.
    async fn last_node(&self, thread: ThreadId, before: Option<u64>) -> Result<String, Error> {
        let mut before = before;
        loop {
            let row = self.store().history(thread, before, 1).await?.pop();
            let Some(row) = row else { return Ok(INPUT.to_owned()) };
            let written = read_delta::<GraphState>(thread, &row)?;
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
