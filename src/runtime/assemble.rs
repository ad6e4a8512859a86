//! Opens store, model, servers and star, and runs threads on them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Error;
use super::report::RunReport;
use super::survey::Survey;
use crate::bus::{self, Bus};
use crate::checkpoint::{self, EffectKind, EffectRow, EffectStatus, Store, ThreadStatus};
use crate::config::{self, Settings};
use crate::graph::Limits;
use crate::ids::ThreadId;
use crate::llm::scripted::ScriptedServer;
use crate::llm::{self, ChatModel, OpenAiModel, Prompts, Role};
use crate::mcp::{self, Pins, Pool, PoolOptions, ServerInfo, ServersFile, ToolHost};
use crate::runner::{RunOptions, RunOutcome, Runner};
use crate::swarm::{GraphState, GraphUpdate, Request, Roster, Star, StarLimits};
use crate::telemetry::{ExportCounts, Exporter, Parents};

/// A server that could not be scanned, or tools of it that were left out.
#[derive(Clone, Debug)]
pub struct ServerProblem {
    pub server: String,
    pub problem: String,
}

/// An agent and the server it is made of.
#[derive(Clone, Debug)]
pub struct AgentInfo {
    pub name: String,
    pub server: ServerInfo,
}

/// Store, model, tools and the star on top of them.
pub struct Runtime {
    settings: Settings,
    runner: Runner<GraphState>,
    /// Tells runs to other processes, and hears theirs.
    bus: Arc<dyn Bus>,
    roster: Arc<Roster>,
    tools: Arc<Pool>,
    agents: Vec<AgentInfo>,
    problems: Vec<ServerProblem>,
    /// The scripted model of a demo, which ends with the runtime.
    companion: Option<ScriptedServer>,
    /// Sends traces where the settings name a collector.
    exporter: Option<Exporter>,
    /// Keeps the graph's shared parts alive.
    _star: Star,
}

impl Runtime {
    /// Opens everything: the store is migrated, the servers are scanned in parallel.
    ///
    /// A server that fails is reported by [`Runtime::problems`] and left out of the menu, unless required.
    ///
    /// # Errors
    /// [`Error`] naming the part that could not be opened and the way out.
    pub async fn open(
        settings: Settings,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        Self::check_model(&settings)?;
        let model: Arc<dyn ChatModel> = Arc::new(OpenAiModel::new(&settings.models)?);
        let file = servers_file(&settings.servers.file, env)?;
        let pool = Pool::new(file, pool_options(&settings)?);
        let store = super::open_store(&settings).await?;
        Self::with_pool(settings, model, pool, store).await
    }

    /// Checks that every role of a run has an endpoint.
    ///
    /// # Errors
    /// [`Error::Model`] saying what to set.
    pub fn check_model(settings: &Settings) -> Result<(), Error> {
        let roles = [Role::Supervisor, Role::Agent, Role::Reflector, Role::Qa];
        match roles.iter().all(|role| settings.models.for_role(role.as_str()).url.is_some()) {
            true => Ok(()),
            false => Err(llm::Error::NotConfigured.into()),
        }
    }

    /// Opens the runtime that a thread goes on with: the demo's for a thread of the demo.
    ///
    /// # Errors
    /// As [`Runtime::open`]; an unknown thread is found out before anything is started.
    pub async fn open_for(
        settings: Settings,
        env: &dyn Fn(&str) -> Option<String>,
        thread: ThreadId,
    ) -> Result<Self, Error> {
        let store = super::open_store(&settings).await?;
        if store.info(thread).await?.tenant == super::demo::TENANT {
            return super::demo::open(settings, store).await;
        }
        Self::check_model(&settings)?;
        let model: Arc<dyn ChatModel> = Arc::new(OpenAiModel::new(&settings.models)?);
        let file = servers_file(&settings.servers.file, env)?;
        let pool = Pool::new(file, pool_options(&settings)?);
        Self::with_pool(settings, model, pool, store).await
    }

    /// Lets a scripted model live as long as the runtime, whose new threads belong to `tenant`.
    pub(super) fn beside(mut self, tenant: &str, companion: ScriptedServer) -> Self {
        self.runner = self.runner.for_tenant(tenant);
        self.companion = Some(companion);
        self
    }

    /// Returns how many calls of the step under way are recorded with their outcomes.
    ///
    /// # Errors
    /// As [`Store::effects`].
    pub async fn recorded_calls(&self, thread: ThreadId) -> Result<usize, Error> {
        let step = self.store().info(thread).await?.head + 1;
        let effects = self.store().effects(thread, Some(step)).await?;
        let is_call = |row: &EffectRow| matches!(row.kind, EffectKind::Model | EffectKind::Tool);
        Ok(effects.iter().filter(|row| is_call(row) && row.status == EffectStatus::Done).count())
    }

    /// Opens a runtime on parts that are there already; servers that did not come from a file have no pins.
    ///
    /// # Errors
    /// As [`Runtime::open`].
    pub async fn with(
        settings: Settings,
        model: Arc<dyn ChatModel>,
        file: ServersFile,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        Self::with_pool(settings, model, Pool::new(file, PoolOptions::default()), store).await
    }

    /// Opens a runtime on parts that are there already, a pool of servers among them.
    ///
    /// # Errors
    /// As [`Runtime::open`].
    pub async fn with_pool(
        settings: Settings,
        model: Arc<dyn ChatModel>,
        pool: Pool,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let prompts = Arc::new(Prompts::new(settings.prompts.dir.as_deref())?);
        let exporter = super::trace::exporter(&settings)?;
        let tools = Arc::new(pool);
        let host: Arc<dyn ToolHost> = Arc::clone(&tools) as _;
        let (prices, limits) = (settings.models.price_list(), star_limits(&settings));
        let parents = Parents::new(Arc::clone(&store), super::trace::scope(&settings));
        let star = Star::new(model, host, prompts, prices, limits, Some(Arc::new(parents)))?;
        let roster = Arc::clone(&star.roster);
        let lease = Duration::from_secs_f64(settings.store.lease_sec);
        let kept = Duration::from_secs_f64(settings.events.keep_sec);
        let bus = bus::open(settings.store.database.expose(), Arc::clone(&store), kept);
        let runner = Runner::new(Arc::clone(&star.graph), store)
            .with_lease(lease)
            .owing_traces(exporter.is_some());
        let (agents, problems) = match scan(&tools).await {
            Ok(scanned) => scanned,
            Err(error) => {
                tools.close().await;
                return Err(error);
            }
        };
        if let Some(exporter) = &exporter {
            exporter.catch_up(Arc::clone(runner.store()));
        }
        roster.set(agents.iter().map(|agent| agent.server.clone()));
        let has_agent = |name: &str| agents.iter().any(|agent| agent.server.name == name);
        let absent = problems.iter().filter(|one| !has_agent(&one.server));
        roster.set_absences(absent.map(|one| (one.server.clone(), one.problem.clone())));
        Ok(Self {
            settings,
            runner,
            bus,
            roster,
            tools,
            agents,
            problems,
            companion: None,
            exporter,
            _star: star,
        })
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the runner of the star's graph.
    pub fn runner(&self) -> &Runner<GraphState> {
        &self.runner
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        self.runner.store()
    }

    /// Returns what tells of runs, those of other processes too.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// Returns the agents that could be made.
    pub fn agents(&self) -> &[AgentInfo] {
        &self.agents
    }

    /// Returns what is wrong with servers.
    pub fn problems(&self) -> &[ServerProblem] {
        &self.problems
    }

    /// Returns the run options that the settings ask for.
    pub fn run_options(&self) -> RunOptions<GraphState> {
        let limits = &self.settings.limits;
        RunOptions {
            // The star ends itself at the limit; the engine's own bound only catches a star that does not.
            limits: Limits {
                max_steps: limits.max_steps + 8,
                max_parallel: limits.max_parallel_agents,
            },
            publish: self.settings.events.publish.then(|| Arc::clone(&self.bus)),
            ..RunOptions::default()
        }
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
        let input = self.input(thread, title, request).await?;
        let outcome = self.runner.start(thread, input, options).await?;
        Ok(self.report(outcome))
    }

    /// Makes a request the input of a thread, which is made when it is new.
    pub(super) async fn input(
        &self,
        thread: ThreadId,
        title: Option<String>,
        request: Request,
    ) -> Result<GraphUpdate, Error> {
        let input = request.into_input(&self.roster.names())?;
        match self.store().info(thread).await {
            Ok(_) => {}
            Err(checkpoint::Error::UnknownThread(_)) => {
                self.runner.create(thread, title).await?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(input)
    }

    /// Goes on with a thread after a crash, a failure, a stop or answers.
    ///
    /// # Errors
    /// [`Error::Run`] when there is nothing to go on with.
    pub async fn resume(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<RunReport, Error> {
        let outcome = self.runner.resume(thread, options).await?;
        Ok(self.report(outcome))
    }

    /// Sends a further message: the answer to an open clarification, or a new question to a finished thread.
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
            let request = Request { question: text, ..Request::default() };
            return self.ask(thread, None, request, options).await;
        }
        self.answer_and_go_on(thread, None, super::Answer::Message(text), options).await
    }

    pub(super) fn report(&self, outcome: RunOutcome<GraphState>) -> RunReport {
        if let Some(exporter) = &self.exporter {
            exporter.run_ended(Arc::clone(self.store()), outcome.thread, outcome.run);
        }
        RunReport::new(&outcome)
    }

    /// Returns what became of the traces so far; none where no collector is named.
    pub fn exports(&self) -> Option<ExportCounts> {
        self.exporter.as_ref().map(Exporter::counts)
    }

    /// Waits for traces under way and returns what became of all; further runs are exported as before.
    pub async fn flush_exports(&self) -> Option<ExportCounts> {
        match &self.exporter {
            Some(exporter) => Some(exporter.flush().await),
            None => None,
        }
    }

    /// Closes sessions, child processes and the store; traces under way are sent first.
    pub async fn close(self) {
        self.tools.close().await;
        if let Some(exporter) = &self.exporter {
            exporter.close().await;
        }
        self.bus.close().await;
        self.runner.store().close().await;
        if let Some(companion) = self.companion {
            companion.stop().await;
        }
    }
}

/// Returns how servers are treated: with their pins beside the servers file.
pub(super) fn pool_options(settings: &Settings) -> Result<PoolOptions, Error> {
    let pins = Pins::beside(&settings.servers.file, settings.trust.pins)?;
    Ok(PoolOptions { pins: Some(Arc::new(pins)), ..PoolOptions::default() })
}

/// Loads the servers file; the default one may be missing, one that was named may not.
pub(super) fn servers_file(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ServersFile, Error> {
    if !path.exists() {
        return match path == Path::new("mcp-servers.toml") {
            true => Ok(ServersFile::default()),
            false => Err(Error::NoServersFile(path.to_owned())),
        };
    }
    Ok(ServersFile::load(path, env)?)
}

pub(super) fn star_limits(settings: &Settings) -> StarLimits {
    let (limits, trust) = (&settings.limits, &settings.trust);
    StarLimits {
        max_steps: limits.max_steps,
        max_tokens: limits.max_tokens,
        // A float to an integer saturates.
        max_nano_usd: limits.max_cost_usd.map(|usd| (usd * 1e9) as u64),
        deadline_sec: limits.deadline_sec,
        max_tool_calls: limits.max_tool_calls_per_task,
        max_reflections: limits.max_reflections,
        result_bytes: limits.result_bytes,
        breaker_retries: limits.breaker_retries,
        approval_timeout: Duration::from_secs_f64(trust.approval_timeout_sec),
        asks_about_taint: trust.taint == config::TaintRule::Ask,
    }
}

/// Scans the servers; only a required one that fails is an error.
async fn scan(tools: &Pool) -> Result<(Vec<AgentInfo>, Vec<ServerProblem>), Error> {
    let Survey { agents, failed, rejected } = scan_pool(tools).await;
    match failed.iter().find(|one| tools.is_required(&one.server)) {
        Some(required) => Err(Error::RequiredServer(required.problem.clone())),
        None => Ok((agents, failed.into_iter().chain(rejected).collect())),
    }
}

/// Scans the servers of a pool and sorts what comes back.
pub(super) async fn scan_pool(tools: &Pool) -> Survey {
    let mut survey = Survey::default();
    for status in tools.scan().await {
        let server = match status.outcome {
            Ok(server) => server,
            Err(error) => {
                let problem = error.to_string();
                survey.failed.push(ServerProblem { server: status.name, problem });
                continue;
            }
        };
        for (tool, reason) in &server.rejected_tools {
            let problem = format!("the tool {tool} was left out: {reason}");
            survey.rejected.push(ServerProblem { server: server.name.clone(), problem });
        }
        survey.agents.push(AgentInfo { name: mcp::agent_name(&server.name), server });
    }
    survey
}
