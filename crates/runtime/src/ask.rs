//! Gives threads questions and messages, and continues with them.

use super::{Error, RunReport, Runtime};
use perihelion_engine::checkpoint::{self, ThreadStatus};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_mcp::agent_name;
use perihelion_star::{GraphState, GraphUpdate, Request};

impl Runtime {
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
        let input = self.input(thread, title, request).await?;
        let outcome = self.runner().start(thread, input, options).await?;
        self.report(outcome).await
    }

    /// Makes a request the input of a thread, which is made when it is new.
    pub(super) async fn input(
        &self,
        thread: ThreadId,
        title: Option<String>,
        request: Request,
    ) -> Result<GraphUpdate, Error> {
        let known = match self.store().info(thread).await {
            Ok(info) => Some(info.tenant),
            Err(checkpoint::Error::UnknownThread(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let tenant = known.as_deref().unwrap_or(self.runner().tenant());
        self.load_teams(tenant).await;
        let input = request.into_input(&self.agent_names(tenant))?;
        if known.is_none() {
            self.runner().create(thread, title).await?;
        }
        Ok(input)
    }

    /// Returns the names of a tenant's agents, including those of servers that have not started.
    pub(super) fn agent_names(&self, tenant: &str) -> Vec<String> {
        let mut names = self.roster.names(tenant);
        for server in self.pool().names() {
            let name = agent_name(&server);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
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
        self.report(self.graph_to_run(&info).await?.resume(thread, options).await?).await
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
}
