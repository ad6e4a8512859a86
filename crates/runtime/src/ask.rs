//! Gives threads questions and messages, and continues with them.

use super::{Error, RunReport, Runtime, read_state};
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

    /// Returns the names of a tenant's agents, those of servers that are not up yet included.
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
    /// [`Error::Run`] when there is nothing to continue with.
    pub async fn resume(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let info = self.store().info(thread).await?;
        if let Some(graph) = self.graph_beside(&info.graph)? {
            return Ok(self.report_of_own(&graph.resume(thread, options).await?));
        }
        self.load_teams(&info.tenant).await;
        let outcome = self.runner().resume(thread, options).await?;
        self.report(outcome).await
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
        if self.store().info(thread).await?.status == ThreadStatus::Idle {
            let team = self.team_of(thread).await?;
            let request = Request { question: text, team, ..Request::default() };
            return self.ask(thread, None, request, options).await;
        }
        self.answer_and_continue(thread, None, super::Answer::Message(text), options).await
    }

    /// Returns the team that a thread's last turn was given to.
    async fn team_of(&self, thread: ThreadId) -> Result<Option<String>, Error> {
        match self.store().info(thread).await?.head {
            0 => Ok(None),
            _ => {
                let view = read_state(self.store().as_ref(), thread, None).await?;
                Ok(view.state.preferences.team.clone())
            }
        }
    }
}
