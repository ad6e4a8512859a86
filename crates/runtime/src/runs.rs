//! Jobs: the work on a thread as a value, and its consequences; questions, and runs that are left to workers.
//!
//! A job determines the runtime that it needs, the tenant of its thread, whether the audit log records it, and whom it
//! follows if another process runs the thread. Every edge has its jobs done by [`Runtime::perform`].

use super::report::RunStatusView;
use super::threads::is_abandoned;
use super::{Answer, DEMO_TENANT, Edit, Error, Holder, RunReport, Runtime};
use crate::dispatch::{self, Dispatcher, Scope};
use perihelion_engine::checkpoint::{
    self, EffectKind, EffectRow, EffectStatus, ThreadInfo, ThreadStatus,
};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_engine::runner::RunOptions;
use perihelion_mcp::agent_name;
use perihelion_star::{GRAPH, GraphState, GraphUpdate, Request};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Job {
    /// Ask a question; the thread is made when it is new.
    Ask { thread: ThreadId, title: Option<String>, tenant: String, request: Request },
    /// Ask a question and leave the run to the workers.
    Submit { thread: ThreadId, title: Option<String>, tenant: String, request: Request },
    /// Ask a question on an existing thread in any status: its remaining work is abandoned.
    Turn { thread: ThreadId, request: Request },
    /// Ask a question on a supervisor's thread of a tenant that waits for no answer.
    NewTurn { thread: ThreadId, tenant: String, request: Request },
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
            | Self::NewTurn { thread, .. }
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
            || matches!(self, Self::Turn { .. } | Self::NewTurn { .. })
            || matches!(self, Self::Message { .. } | Self::Input { .. })
    }

    /// Returns whether a person answers in it, which the audit log records.
    pub fn decides(&self) -> bool {
        matches!(self, Self::Message { .. } | Self::Answer { .. } | Self::Answers { .. })
    }

    pub fn is_submission(&self) -> bool {
        matches!(self, Self::Submit { .. })
    }
}

impl Runtime {
    /// Performs a job to its end, its next question or its failure; follows a run of another process.
    ///
    /// # Errors
    /// [`Error`] if the job is rejected: another tenant's thread, a thread without work, an answer without a question.
    pub async fn perform(
        &self,
        job: Job,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        if !job.is_submission() && self.plugins.asks_again() {
            self.await_agents(job.thread(), &options.cancel).await?;
        }
        match job {
            Job::Ask { thread, title, tenant, request } => {
                self.ask_for(&tenant, thread, title, request, options).await
            }
            Job::Submit { thread, title, tenant, request } => {
                self.submit(&tenant, thread, title, request).await
            }
            Job::Turn { thread, request } => self.take_turn(thread, request, options).await,
            Job::NewTurn { thread, tenant, request } => {
                self.new_turn(GRAPH, &tenant, thread, request, options).await
            }
            Job::Resume { thread } => self.resume_or_follow(thread, options).await,
            Job::Continue { thread } => self.resume_or_rest(thread, options).await,
            Job::Message { thread, text } => self.message(thread, text, options).await,
            Job::Answer { thread, interrupt, answer } => {
                self.answer_and_continue(thread, interrupt, answer, options).await
            }
            Job::Answers { thread, by, answers } => {
                for (id, answer) in answers {
                    self.answer_by(by.as_deref(), thread, Some(id), answer).await?;
                }
                self.resume_or_rest(thread, options).await
            }
            Job::Edit { thread, update, as_node, goto } => {
                let edit = Edit { update, as_node, goto: Some(goto), ..Edit::default() };
                self.edit(thread, edit).await?;
                self.resume_or_rest(thread, options).await
            }
            Job::Input { thread, input } => {
                let graph = self.graph_of(thread).await?;
                self.report(graph.start(thread, input, options).await?).await
            }
        }
    }

    /// Returns who works on the thread that a job would resume: then the job only follows.
    pub async fn followed_by(&self, job: &Job) -> Option<Holder> {
        let Job::Resume { thread } = job else { return None };
        let info = self.store().info(*thread).await.ok()?;
        let is_claimed = info.status == ThreadStatus::Busy && !is_abandoned(&info);
        info.owner.as_deref().filter(|_| is_claimed).map(Holder::of)
    }

    /// Returns how many calls of the step under way are recorded with their outcomes, and are read back by a job.
    pub async fn recorded_calls(&self, job: &Job) -> Result<usize, Error> {
        if job.begins() {
            return Ok(0);
        }
        let store = self.store();
        let thread = job.thread();
        let step = store.info(thread).await?.head + 1;
        let effects = store.effects(thread, Some(step)).await?;
        let is_call = |row: &EffectRow| matches!(row.kind, EffectKind::Model | EffectKind::Tool);
        Ok(effects.iter().filter(|row| is_call(row) && row.status == EffectStatus::Done).count())
    }

    /// Asks a thread a question, making the thread when it is new, and runs to the end or the next interrupt.
    ///
    /// # Errors
    /// [`Error::Request`] for a bad request, [`Error::Run`] when the thread has an unfinished run.
    pub async fn ask(
        &self,
        thread: ThreadId,
        title: Option<String>,
        request: Request,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        self.ask_for(&self.runner().tenant, thread, title, request, options).await
    }

    async fn ask_for(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
        request: Request,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let (input, exists) = self.input(tenant, thread, request).await?;
        let outcome = if exists {
            self.runner().start(thread, input, options).await?
        } else {
            self.runner().start_new(tenant, thread, title, input, options).await?
        };
        self.report(outcome).await
    }

    /// Turns a request into the input of a thread, which will be the tenant's if it is new. Also returns whether the
    /// thread exists.
    async fn input(
        &self,
        tenant: &str,
        thread: ThreadId,
        request: Request,
    ) -> Result<(GraphUpdate, bool), Error> {
        let known = match self.store().info(thread).await {
            Ok(info) if tenant != &*self.runner().tenant && info.tenant != tenant => {
                return Err(checkpoint::Error::ThreadExists(thread).into());
            }
            Ok(info) => Some(info.tenant),
            Err(checkpoint::Error::UnknownThread(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let of = known.as_deref().unwrap_or(tenant);
        self.load_teams(of).await;
        Ok((request.into_input(&self.agent_names(of))?, known.is_some()))
    }

    /// Returns the names of a tenant's agents, including those of servers that have not started.
    pub(super) fn agent_names(&self, tenant: &str) -> Vec<String> {
        let mut names = self.roster.names(tenant);
        for server in self.plugins.pool.names() {
            let name = agent_name(&server);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Checks a tenant's request as [`Runtime::take_turn`] would, without running anything.
    pub async fn check_request(&self, tenant: &str, request: Request) -> Result<(), Error> {
        if request.clone().into_input(&self.agent_names(tenant)).is_err() {
            // It may name a team that another process has made since.
            self.load_teams(tenant).await;
            request.into_input(&self.agent_names(tenant))?;
        }
        Ok(())
    }

    /// Resumes a thread after a crash, a failure, a stop or answers.
    ///
    /// # Errors
    /// [`Error::Run`] if the thread has no work left.
    pub async fn resume(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let info = self.store().info(thread).await?;
        let graph = self.graph_to_run(&info.graph, &info.tenant).await?;
        self.report(graph.resume(thread, options).await?).await
    }

    /// Sends a further message: the answer to an open clarification, or a new question to a finished thread, which stays
    /// the team's that its last turn was given to.
    ///
    /// # Errors
    /// [`Error::Answer`] when the thread waits for something else.
    pub async fn message(
        &self,
        thread: ThreadId,
        text: String,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let info = self.store().info(thread).await?;
        if info.status == ThreadStatus::Idle {
            let state = self.graph(&info.graph)?.state(thread, Some(info.head)).await?;
            let team = state.star().preferences.team.clone();
            let request = Request { question: text, team, ..Request::default() };
            return self.ask(thread, None, request, options).await;
        }
        self.answer_and_continue(thread, None, super::Answer::Message(text), options).await
    }

    /// Asks a thread a question, making the thread when it is new, and leaves the run to the workers.
    ///
    /// When this returns, the question and the call to the workers are durable.
    pub async fn submit(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
        request: Request,
    ) -> Result<RunReport, Error> {
        let (input, exists) = self.input(tenant, thread, request).await?;
        if !exists {
            self.runner().make_or_read(tenant, thread, title).await?;
        }
        let run = self.runner().submit(thread, input).await?;
        Ok(RunReport::of(thread, run.to_string(), RunStatusView::Queued, &GraphState::default()))
    }

    /// Resumes a thread that was left to the workers, or whose process died.
    ///
    /// `None` if this worker has no work: the thread is idle, waits for a person, has a holder, belongs to another
    /// graph or to the demo, or was deleted.
    ///
    /// # Errors
    /// [`Error::Run`] when the thread cannot be read or its run broke on the store.
    pub async fn wake(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<Option<RunReport>, Error> {
        let info = match self.store().info(thread).await {
            Ok(info) if info.tenant == DEMO_TENANT => return Ok(None),
            Ok(info) => info,
            Err(checkpoint::Error::UnknownThread(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if self.plugins.asks_again() {
            // Until then another worker may take it.
            self.await_agents(thread, &options.cancel).await?;
        }
        match self.woken(&info, options).await {
            Err(Error::UnknownGraph(_)) => Ok(None),
            other => other,
        }
    }

    /// Resumes a thread of any graph that was left to the workers, or whose process died.
    pub(super) async fn woken(
        &self,
        info: &ThreadInfo,
        options: RunOptions<GraphState>,
    ) -> Result<Option<RunReport>, Error> {
        match self.graph_to_run(&info.graph, &info.tenant).await?.wake(info.id, options).await? {
            Some(ended) => self.report(ended).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens the source of threads for a worker of this runtime.
    ///
    /// A `thorough` one polls every time: if it finds no thread, no work is left.
    pub fn dispatcher(&self, thorough: bool) -> Result<Arc<Dispatcher>, Error> {
        let scope = Scope {
            graphs: self.graph_names(),
            except_tenant: Some(DEMO_TENANT.to_owned()),
            thorough,
        };
        let url = self.settings().store.database.expose();
        Ok(dispatch::open(url, self.store().clone(), scope)?)
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
