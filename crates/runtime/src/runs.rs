//! Jobs: the work on a thread as a value, and its consequences.
//!
//! A job determines the runtime that it needs, the tenant of its thread, whether the audit log records it, and whom it
//! follows if another process runs the thread. Every edge has its jobs done by [`Runs`].

use super::threads::is_abandoned;
use super::{Answer, Builder, Edit, Error, Holder, RunReport, Runtime};
use perihelion_engine::checkpoint::{EffectKind, EffectRow, EffectStatus, ThreadStatus};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_engine::runner::RunOptions;
use perihelion_star::{GraphState, Request};
use serde_json::Value;

/// The work on a thread.
#[derive(Clone, Debug)]
pub enum Job {
    /// Ask a question; the thread is made when it is new.
    Ask { thread: ThreadId, title: Option<String>, tenant: String, request: Request },
    /// Ask a question and leave the run to the workers.
    Submit { thread: ThreadId, title: Option<String>, tenant: String, request: Request },
    /// Ask a question on an existing thread in any status: its remaining work is abandoned.
    Turn { thread: ThreadId, request: Request },
    /// Continue after a crash, a failure or a stop; a finished thread is refused.
    Resume { thread: ThreadId },
    /// Continue if there is work; a finished thread is only reported.
    Continue { thread: ThreadId },
    /// Answer the open clarification, or ask on when the thread is finished.
    Message { thread: ThreadId, text: String },
    /// Answer an open question and continue.
    Answer { thread: ThreadId, interrupt: Option<InterruptId>, answer: Answer },
    /// Answer open questions on behalf of a person, and continue.
    Answers { thread: ThreadId, by: Option<String>, answers: Vec<(InterruptId, Answer)> },
    /// Edit the state, as if a node had written it, and continue from there.
    Edit { thread: ThreadId, update: Value, as_node: Option<String>, goto: Vec<Value> },
    /// Give a thread of a program's own graph an input, in any status.
    Input { thread: ThreadId, input: Value },
}

impl Job {
    pub fn thread(&self) -> ThreadId {
        match self {
            Self::Ask { thread, .. }
            | Self::Submit { thread, .. }
            | Self::Turn { thread, .. }
            | Self::Resume { thread }
            | Self::Continue { thread }
            | Self::Message { thread, .. }
            | Self::Answer { thread, .. }
            | Self::Answers { thread, .. }
            | Self::Edit { thread, .. }
            | Self::Input { thread, .. } => *thread,
        }
    }

    /// Returns whether it creates a missing thread, and depends on no earlier rows.
    pub fn begins(&self) -> bool {
        matches!(self, Self::Ask { .. } | Self::Submit { .. })
    }

    /// Returns whether it has a question or a message, which a busy thread rejects.
    pub fn asks(&self) -> bool {
        self.begins()
            || matches!(self, Self::Turn { .. } | Self::Message { .. } | Self::Input { .. })
    }

    /// Returns whether a person answers in it, which the audit log records.
    pub fn decides(&self) -> bool {
        matches!(self, Self::Message { .. } | Self::Answer { .. } | Self::Answers { .. })
    }

    /// Returns whether its run is left to the workers.
    pub fn is_submission(&self) -> bool {
        matches!(self, Self::Submit { .. })
    }
}

impl Builder<'_> {
    /// Opens the runtime for a job: by the settings, or by the demo of its thread; a submission needs no server.
    pub fn for_job(self, job: &Job) -> Self {
        match job {
            Job::Submit { .. } => self.without_servers(),
            Job::Ask { .. } => self,
            _ => self.for_thread(job.thread()),
        }
    }
}

impl Runtime {
    pub fn runs(&self) -> Runs<'_> {
        Runs(self)
    }
}

#[derive(Clone, Copy)]
pub struct Runs<'a>(&'a Runtime);

impl Runs<'_> {
    /// Performs a job to its end, its next question or its failure; follows a run of another process.
    ///
    /// # Errors
    /// [`Error`] if the job is rejected: another tenant's thread, a thread without work, an answer without a question.
    pub async fn perform(
        &self,
        job: Job,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let Self(runtime) = self;
        if !job.is_submission() {
            runtime.await_agents(job.thread(), &options.cancel).await?;
        }
        match job {
            Job::Ask { thread, title, tenant, request } => {
                self.make_for(&tenant, thread, title.clone()).await?;
                runtime.ask(thread, title, request, options).await
            }
            Job::Submit { thread, title, tenant, request } => {
                self.make_for(&tenant, thread, title.clone()).await?;
                runtime.submit(thread, title, request).await
            }
            Job::Turn { thread, request } => runtime.take_turn(thread, request, options).await,
            Job::Resume { thread } => runtime.resume_or_follow(thread, options).await,
            Job::Continue { thread } => runtime.resume_or_rest(thread, options).await,
            Job::Message { thread, text } => runtime.message(thread, text, options).await,
            Job::Answer { thread, interrupt, answer } => {
                runtime.answer_and_continue(thread, interrupt, answer, options).await
            }
            Job::Answers { thread, by, answers } => {
                for (id, answer) in answers {
                    runtime.answer_by(by.as_deref(), thread, Some(id), answer).await?;
                }
                runtime.resume_or_rest(thread, options).await
            }
            Job::Edit { thread, update, as_node, goto } => {
                let as_node = as_node.as_deref();
                runtime
                    .edit(thread, Edit { update, as_node, goto: Some(&goto), ..Edit::default() })
                    .await?;
                runtime.resume_or_rest(thread, options).await
            }
            Job::Input { thread, input } => {
                let graph = runtime.graph_of(thread).await?;
                runtime.report(graph.start(thread, input, options).await?).await
            }
        }
    }

    /// Creates the thread of another tenant than the runtime's own, or rejects a thread of a third tenant.
    async fn make_for(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<(), Error> {
        if tenant == self.0.runner().tenant() {
            return Ok(());
        }
        self.0.create_for(self.0.supervisor(), tenant, thread, title).await.map(drop)
    }

    /// Returns who works on the thread that a job would resume: then the job only follows.
    pub async fn followed_by(&self, job: &Job) -> Option<Holder> {
        let Job::Resume { thread } = job else { return None };
        let info = self.0.store().info(*thread).await.ok()?;
        let is_claimed = info.status == ThreadStatus::Busy && !is_abandoned(&info);
        info.owner.as_deref().filter(|_| is_claimed).map(Holder::of)
    }

    /// Returns how many calls of the step under way are recorded with their outcomes, and are read back by a job.
    pub async fn recorded_calls(&self, job: &Job) -> Result<usize, Error> {
        if job.begins() {
            return Ok(0);
        }
        let store = self.0.store();
        let thread = job.thread();
        let step = store.info(thread).await?.head + 1;
        let effects = store.effects(thread, Some(step)).await?;
        let is_call = |row: &EffectRow| matches!(row.kind, EffectKind::Model | EffectKind::Tool);
        Ok(effects.iter().filter(|row| is_call(row) && row.status == EffectStatus::Done).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_says_what_it_needs() {
        let thread = ThreadId::new();
        let text = "continue".to_owned();
        let request = Request::default();
        let tenant = "default".to_owned();
        let submit = Job::Submit { thread, title: None, tenant, request: request.clone() };
        assert!(submit.begins() && submit.asks() && submit.is_submission() && !submit.decides());
        let turn = Job::Turn { thread, request };
        assert!(turn.asks() && !turn.begins() && !turn.decides());
        let message = Job::Message { thread, text };
        assert!(message.asks() && message.decides() && !message.begins());
        let answer = Job::Answer { thread, interrupt: None, answer: Answer::OutcomeSkip };
        assert!(answer.decides() && !answer.asks());
        for job in [Job::Resume { thread }, Job::Continue { thread }] {
            assert!(!job.begins() && !job.asks() && !job.decides() && !job.is_submission());
            assert_eq!(job.thread(), thread);
        }
    }
}
