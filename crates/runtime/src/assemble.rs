//! Opens store, model, servers and star, and runs threads on them.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use perihelion_database::Database;
use tokio_util::task::AbortOnDropHandle;

use super::plugins::{Life, Plugins, Source};
use super::report::{RunReport, data_of};
use super::teams::Teams;
use super::{Audit, Error, Metrics};
use crate::graphs::{self, Ended, GraphParts, Graphs, Served, ThreadState};
use crate::learned::MemoryService;
use perihelion_engine::bus::{self, Bus};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::graph::{Graph, Limits, State};
use perihelion_engine::runner::{RunOptions, Runner, Spans};
use perihelion_llm::{ChatModel, Prompts, Role};
use perihelion_mcp::{Pool, ToolHost};
use perihelion_settings::config::{self, Settings};
use perihelion_settings::metrics;
use perihelion_star::{
    Allowance, Experience, GRAPH, GraphState, Home, Kinds, MenuSize, Roster, Shapes, Star,
    StarLimits, StarOptions,
};
use perihelion_telemetry::metrics::Deliveries;
use perihelion_telemetry::{ContinuedRuns, ExportCounts, Exporter, LiveSpans, Parents};

/// The tenant of the demo's threads, which no worker continues.
pub const DEMO_TENANT: &str = "demo";

/// Anything that ends when it is dropped.
pub type Companions = Box<dyn Any + Send + Sync>;

/// Store, model, tools and the star on top of them.
pub struct Runtime {
    settings: Settings,
    runner: Runner<GraphState>,
    supervisor: Arc<dyn Served>,
    pub(super) graphs: BTreeMap<String, Arc<dyn Served>>,
    /// Sends and receives events of runs to and from other processes.
    bus: Arc<dyn Bus>,
    pub(super) roster: Arc<Roster>,
    pub(super) plugins: Arc<Plugins>,
    /// Keep the agents as the servers change, and ask those again that are absent.
    _keepers: Vec<AbortOnDropHandle<()>>,
    /// The servers of a demo, which end with the runtime.
    companions: Option<Companions>,
    /// Exports traces if the settings name a collector.
    exporter: Option<Exporter>,
    /// Exports metrics if the settings require it.
    deliveries: Option<Deliveries>,
    /// The database of teams, skills, memories and usage, if they are stored.
    pub(super) database: Option<Database>,
    pub(super) teams: Option<Teams>,
    model: Arc<dyn ChatModel>,
    pub(super) prompts: Arc<Prompts>,
    /// Skills and memories, if they are stored.
    experience: Option<Arc<MemoryService>>,
    /// The audit log for decisions of people; empty without one.
    pub(super) audit: OnceLock<Audit>,
}

pub(super) struct Parts {
    pub settings: Settings,
    pub store: Arc<dyn Store>,
    pub model: Arc<dyn ChatModel>,
    pub pool: Pool,
    pub source: Source,
    pub kinds: Arc<Kinds>,
    /// Whether skills, memories and teams are stored, in the database of the settings.
    pub learns: bool,
    /// The threads whose traces are exported only at their end.
    pub continued: ContinuedRuns,
    pub scans: bool,
    /// The servers of a demo, whose tenant owns new threads.
    pub companions: Option<Companions>,
    pub graphs: Graphs,
}

/// What the runners of all graphs have in common.
#[derive(Clone)]
pub(super) struct Setup {
    pub store: Arc<dyn Store>,
    pub lease: Duration,
    /// Bytes of a state at most.
    pub most: usize,
    pub spans: Option<Arc<dyn Spans>>,
    pub exports: bool,
}

impl Setup {
    pub fn runner<S: State>(self, graph: Arc<Graph<S>>) -> Runner<S> {
        let mut runner = Runner::new(graph, self.store);
        runner.lease = self.lease;
        runner.most_bytes = Some(self.most);
        runner.spans = self.spans;
        runner.exports_traces = self.exports;
        runner
    }
}

impl Runtime {
    pub(super) async fn assemble(parts: Box<Parts>) -> Result<Self, Error> {
        let Parts { settings, store, model, pool, source, kinds, companions, .. } = *parts;
        let Parts { learns, continued, scans, graphs, .. } = *parts;
        store.check_keys().await?;
        let is_long = matches!(continued, ContinuedRuns::All) && companions.is_none();
        let life = if !scans {
            Life::OfSubmission
        } else if is_long {
            Life::Long
        } else {
            Life::OfRun
        };
        let exporter = super::trace::exporter(&settings, continued)?;
        let tools = Arc::new(pool);
        let host: Arc<dyn ToolHost> = Arc::clone(&tools) as _;
        // Before anything happens that is counted.
        let deliveries = super::metrics::deliveries(&settings, &store, &tools)?;
        let parents = Parents::new(Arc::clone(&store), settings.traces.scope);
        let parents = Arc::new(parents);
        let live = Arc::new(LiveSpans::new(Arc::clone(&parents)));
        let mut options = star_options(&settings, &kinds, &store)?;
        let url = settings.store.database.expose();
        let database = if learns { Some(Database::open(url).await?) } else { None };
        let experience = match &database {
            // A scripted model has no answers about what to learn.
            Some(database) if companions.is_none() => {
                crate::learned::of_runs(&settings, database, &model, &options.prompts)?
            }
            _ => None,
        };
        options.experience = experience.clone().map(|experience| experience as Arc<dyn Experience>);
        let roster = Arc::new(Roster::default());
        let teams =
            database.as_ref().map(|database| Teams::new(&settings, database, &kinds, &roster));
        options.founder = teams.as_ref().and_then(Teams::founder);
        let prompts = Arc::clone(&options.prompts);
        let own = GraphParts {
            store: Arc::clone(&store),
            model: Arc::clone(&model),
            tools: Arc::clone(&host),
        };
        let star =
            Star::new(Arc::clone(&roster), options, Arc::clone(&model), host, Some(parents))?;
        let lease = Duration::from_secs_f64(settings.store.lease_sec);
        let kept = Duration::from_secs_f64(settings.events.keep_sec);
        let bus = bus::open(settings.store.database.expose(), Arc::clone(&store), kept);
        let most = settings.limits.max_state_bytes;
        let setup = Setup { store, lease, most, spans: Some(live), exports: exporter.is_some() };
        let mut graphs = graphs.open(&own, &setup)?;
        let mut runner = setup.runner(star.graph);
        runner.judge = Some(super::report::judge);
        if companions.is_some() {
            runner.tenant = DEMO_TENANT.into();
        }
        let begun =
            Plugins::begin(source, Arc::clone(&tools), Arc::clone(&roster), kinds, life).await;
        let (plugins, keepers) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                tools.close().await;
                return Err(error);
            }
        };
        if let Some(teams) = &teams {
            teams.load(&runner.tenant, &roster).await;
        }
        if let Some(exporter) = &exporter {
            exporter.catch_up(Arc::clone(runner.store()));
        }
        let supervisor: Arc<dyn Served> = Arc::new(graphs::star(runner.clone()));
        graphs.insert(GRAPH.to_owned(), Arc::clone(&supervisor));
        Ok(Self {
            settings,
            supervisor,
            graphs,
            runner,
            bus,
            roster,
            plugins,
            _keepers: keepers,
            companions,
            exporter,
            deliveries,
            database,
            teams,
            model,
            prompts,
            experience,
            audit: OnceLock::new(),
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn runner(&self) -> &Runner<GraphState> {
        &self.runner
    }

    pub fn supervisor(&self) -> &Arc<dyn Served> {
        &self.supervisor
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        self.runner.store()
    }

    /// Returns the open database of teams, skills, memories and usage, if they are stored.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    pub fn is_demo(&self) -> bool {
        self.companions.is_some()
    }

    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    pub fn model(&self) -> &Arc<dyn ChatModel> {
        &self.model
    }

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

    /// Reports on a run that has ended, after its usage was stored and its trace was queued.
    ///
    /// # Errors
    /// [`Error::Store`] when a table that it found cannot be read back.
    pub(super) async fn report(&self, outcome: Ended) -> Result<RunReport, Error> {
        if let Some(exporter) = &self.exporter {
            exporter.run_ended(Arc::clone(self.store()), outcome.thread, outcome.run);
        }
        let mut report = RunReport::new(&outcome);
        self.note_ended(&outcome, &report).await;
        let store = self.store().as_ref();
        let thread = outcome.thread;
        report.data = data_of(store, thread, &outcome.state).await?;
        // The state of a program's own graph has no turns; it is read from the store.
        let state = Some(outcome.state).filter(|state| state.turn > 0);
        report.state = state.map(|state| ThreadState::new(self.supervisor.about(), state));
        Ok(report)
    }

    /// Returns what can be served to Prometheus; from then on at the latest it is collected.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        let tools = Some(Arc::clone(&self.plugins.pool));
        Metrics::new(&self.settings, Arc::clone(self.store()), tools)
    }

    /// Returns the status of the exported traces; `None` without a collector.
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
        // As they stood while they were needed: the last delivery comes after their end.
        for (server, up) in self.plugins.pool.reachable() {
            metrics::server_stands(server, up);
        }
        self.plugins.pool.close().await;
        if let Some(experience) = &self.experience {
            experience.close().await;
        }
        if let Some(database) = &self.database {
            database.close().await;
        }
        if let Some(exporter) = &self.exporter {
            exporter.close().await;
        }
        // Last, so that they tell of the traces too.
        if let Some(deliveries) = self.deliveries {
            deliveries.close().await;
        }
        self.bus.close().await;
        self.runner.store().close().await;
        drop(self.companions);
    }
}

/// Reads the prompt templates of the kinds, or those of the settings' directory in their place.
pub fn read_prompts(settings: &Settings, kinds: &Kinds) -> Result<Prompts, Error> {
    let templates = kinds.iter().flat_map(|kind| kind.card().templates.iter().copied());
    Ok(Prompts::with(settings.prompts.dir.as_deref(), templates.collect::<Vec<_>>())?)
}

pub(super) fn star_options(
    settings: &Settings,
    kinds: &Kinds,
    store: &Arc<dyn Store>,
) -> Result<StarOptions, Error> {
    let shapes = |role: Role| Shapes::new(role, settings.models.for_role(role.as_str()).protocol);
    let lease = Duration::from_secs_f64(settings.store.lease_sec);
    let style = settings.prompts.style.as_deref().map(str::trim);
    Ok(StarOptions {
        prompts: Arc::new(read_prompts(settings, kinds)?),
        prices: settings.models.price_list(),
        limits: star_limits(settings),
        home: Home { store: Arc::clone(store), lease },
        experience: None,
        shapes: shapes(Role::Supervisor),
        reviews: shapes(Role::Reflector),
        founder: None,
        style: style.filter(|text| !text.is_empty()).map(Into::into),
    })
}

fn star_limits(settings: &Settings) -> StarLimits {
    let limits = &settings.limits;
    let trust = &settings.trust;
    let swarm = &settings.swarm;
    let teams = &settings.teams;
    StarLimits {
        max_steps: limits.max_steps,
        max_tokens: limits.max_tokens,
        max_nano_usd: limits.max_cost_usd.map(config::nano_usd),
        deadline_sec: limits.deadline_sec,
        max_tool_calls: limits.max_tool_calls_per_task,
        turn_tool_calls: limits.max_tool_calls,
        of_teams: Allowance {
            steps: teams.max_steps,
            tokens: teams.max_tokens,
            nano_usd: teams.max_cost_usd.map(config::nano_usd),
            tool_calls: teams.max_tool_calls,
            seconds: teams.deadline_sec,
        },
        max_reflections: limits.max_reflections,
        result_bytes: limits.result_bytes,
        breaker_retries: limits.breaker_retries,
        menu: MenuSize { all: swarm.menu_agents, fitting: swarm.menu_matches },
        agent_tools: swarm.agent_tools,
        approval_timeout: Duration::from_secs_f64(trust.approval_timeout_sec),
        interactive_approval_timeout: Duration::from_secs_f64(
            trust.interactive_approval_timeout_sec,
        ),
        asks_about_taint: trust.taint == config::TaintRule::Ask,
    }
}
