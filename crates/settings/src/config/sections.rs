//! The small sections: store, servers, trust, limits, swarm, prompts, log.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::resolve::{Setting, any, if_any, not_empty, positive, seconds, section};
use super::strict::Invalid;

section! {
    /// Where threads are kept.
    Store, StoreFile, "store" {
        /// Database address: `sqlite:PATH`, `postgres://…` or `memory:`; by default a SQLite file
        /// `perihelion/perihelion.db` under the user's data directory.
        database: DatabaseUrl = DatabaseUrl::in_data_directory(), "DATABASE_URL", any;
        /// Seconds that the claim of a process on a thread lasts without renewal; it is renewed each third
        /// of it. After a process died, another machine resumes its threads that much later.
        lease_sec: f64 = 15.0, "PERIHELION_STORE_LEASE_SEC", seconds;
    }
}

section! {
    /// What `perihelion worker` does.
    Worker, WorkerFile, "worker" {
        /// Threads that one worker drives at the same time.
        concurrency: usize = 4, "PERIHELION_WORKER_CONCURRENCY", positive;
        /// Address at which a worker serves its metrics; `None` means no metrics.
        metrics: Option<SocketAddr> = None, "PERIHELION_WORKER_METRICS", any;
        /// Runs in a row that can die with their process and without a commit before workers skip the thread.
        max_crashes: u32 = 10, "PERIHELION_WORKER_MAX_CRASHES", positive;
    }
}

section! {
    /// The events of runs for other processes.
    Events, EventsFile, "events" {
        /// Whether runs write their events to the database, so that other processes can follow them live.
        publish: bool = true, "PERIHELION_EVENTS_PUBLISH", any;
        /// Seconds for which events are stored; those of active threads always stay.
        keep_sec: f64 = 86_400.0, "PERIHELION_EVENTS_KEEP_SEC", seconds;
    }
}

section! {
    /// Which MCP servers there are.
    Servers, ServersFile, "servers" {
        /// The servers file; a relative path in the settings file starts at that file's directory.
        file: PathBuf = PathBuf::from("mcp-servers.toml"), "PERIHELION_SERVERS", any;
        /// Whether the servers' tool lists are stored in the user's cache directory, so that a server is started at its
        /// first call and not at the start of a run.
        cache: bool = true, "PERIHELION_SERVERS_CACHE", any;
        /// Whether changes of the servers file apply while the program runs.
        watch: bool = true, "PERIHELION_SERVERS_WATCH", any;
        /// Seconds for which a worker's or service's run waits for absent servers: required ones, those of its next
        /// agents, and any if there is no agent at all.
        wait_sec: f64 = 60.0, "PERIHELION_SERVERS_WAIT_SEC", seconds;
    }
}

section! {
    /// How far MCP servers are trusted.
    Trust, TrustFile, "trust" {
        /// Whether a server whose definitions changed is left alone until a person approves them.
        pins: PinMode = PinMode::FirstUse, "PERIHELION_TRUST_PINS", any;
        /// Location of the pins; by default `mcp-servers.lock` next to the servers file.
        pins_file: Option<PathBuf> = None, "PERIHELION_TRUST_PINS_FILE", any;
        /// The handling of calls that change something and that open-world text may have caused.
        taint: TaintRule = TaintRule::Ask, "PERIHELION_TRUST_TAINT", any;
        /// Seconds for which a request for approval can be answered; a later answer is asked for again.
        approval_timeout_sec: f64 = 86_400.0, "PERIHELION_TRUST_APPROVAL_TIMEOUT_SEC", seconds;
        /// The same for runs that a client of the service follows as they run.
        interactive_approval_timeout_sec: f64 = 120.0, "PERIHELION_TRUST_INTERACTIVE_APPROVAL_TIMEOUT_SEC", seconds;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinMode {
    /// The definitions of a new server are pinned; a change puts it into quarantine.
    FirstUse,
    /// A server is in quarantine until a person has approved it once.
    Required,
    /// Definitions are neither pinned nor compared.
    Off,
}

impl Setting for PinMode {}

/// The handling of calls that open-world text may have caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaintRule {
    /// A person approves each of them.
    Ask,
    /// They are made like any other.
    Off,
}

impl Setting for TaintRule {}

section! {
    /// Bounds of a run; when one is reached the run goes to its answer with the reason.
    Limits, LimitsFile, "limits" {
        /// Super-steps of one run.
        max_steps: u64 = 64, "PERIHELION_LIMITS_MAX_STEPS", positive;
        /// Tokens of one run, input and output together; `None` means unbounded.
        max_tokens: Option<u64> = None, "PERIHELION_LIMITS_MAX_TOKENS", if_any(positive);
        /// US dollars of one run, by `[models.prices]`; `None` means unbounded.
        max_cost_usd: Option<f64> = None, "PERIHELION_LIMITS_MAX_COST_USD", if_any(positive);
        /// Seconds of a run, without waiting for people; `None` means unbounded.
        deadline_sec: Option<u64> = None, "PERIHELION_LIMITS_DEADLINE_SEC", if_any(positive);
        /// Agents that run at the same time within one super-step.
        max_parallel_agents: usize = 4, "PERIHELION_LIMITS_MAX_PARALLEL_AGENTS", positive;
        /// Tool calls an agent may make for one task.
        max_tool_calls_per_task: u32 = 16, "PERIHELION_LIMITS_MAX_TOOL_CALLS_PER_TASK", positive;
        /// Tool calls of one run, for all agents together; `None` means unbounded.
        max_tool_calls: Option<u64> = None, "PERIHELION_LIMITS_MAX_TOOL_CALLS", if_any(positive);
        /// Times a rejected output is sent back to its agent.
        max_reflections: u32 = 2, "PERIHELION_LIMITS_MAX_REFLECTIONS", any;
        /// Bytes of a tool result above which it becomes an artifact with a preview.
        result_bytes: usize = 16_384, "PERIHELION_LIMITS_RESULT_BYTES", positive;
        /// Bytes of a thread's state as JSON; inputs and edits that would make it larger are refused.
        max_state_bytes: usize = 83_886_080, "PERIHELION_LIMITS_MAX_STATE_BYTES", positive;
        /// Repeated routings without progress after which the circuit breaker ends the run.
        breaker_retries: u32 = 2, "PERIHELION_LIMITS_BREAKER_RETRIES", positive;
    }
}

section! {
    /// Bounds of one task of a team, within the remaining bounds of the run, which a team never exceeds.
    Teams, TeamsFile, "teams" {
        /// Super-steps; by default the rest of the run's.
        max_steps: Option<u64> = None, "PERIHELION_TEAMS_MAX_STEPS", if_any(positive);
        /// Tokens, input and output together; by default the rest of the run's.
        max_tokens: Option<u64> = None, "PERIHELION_TEAMS_MAX_TOKENS", if_any(positive);
        /// US dollars, by `[models.prices]`; by default the rest of the run's.
        max_cost_usd: Option<f64> = None, "PERIHELION_TEAMS_MAX_COST_USD", if_any(positive);
        /// Tool calls; by default the rest of the run's.
        max_tool_calls: Option<u64> = None, "PERIHELION_TEAMS_MAX_TOOL_CALLS", if_any(positive);
        /// Seconds of each run; by default the rest of the run's.
        deadline_sec: Option<u64> = None, "PERIHELION_TEAMS_DEADLINE_SEC", if_any(positive);
        /// Whether the supervisor of a run can make the architect design a team: `off`, `ask` a person first, or `save`
        /// it.
        architect: Founding = Founding::Off, "PERIHELION_TEAMS_ARCHITECT", any;
    }
}

/// Whether teams are designed while a run is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Founding {
    /// People alone have teams designed.
    Off,
    /// The supervisor may; a person agrees before a team is saved.
    Ask,
    /// The supervisor can, without asking a person.
    Save,
}

impl Setting for Founding {}

section! {
    /// How much of many agents and tools models are shown at once.
    Swarm, SwarmFile, "swarm" {
        /// Up to this number of agents, the supervisor's catalog shows all of them.
        menu_agents: usize = 30, "PERIHELION_SWARM_MENU_AGENTS", positive;
        /// With more agents, how many of them are shown because they fit the request best; the rest can be searched.
        menu_matches: usize = 12, "PERIHELION_SWARM_MENU_MATCHES", positive;
        /// Tools up to which an agent is shown all of its server's; of more, this many that fit its task best.
        agent_tools: usize = 25, "PERIHELION_SWARM_AGENT_TOOLS", positive;
        /// Whether agents learn skills, and memories about named users are stored.
        experience: bool = true, "PERIHELION_SWARM_EXPERIENCE", any;
    }
}

section! {
    /// The source of prompt templates, and the style of answers.
    Prompts, PromptsFile, "prompts" {
        /// Directory whose files replace the embedded templates of the same name.
        dir: Option<PathBuf> = None, "PERIHELION_PROMPTS_DIR", any;
        /// Style rules for every answer, such as "short, with amounts in euros"; by default the template's own.
        style: Option<String> = None, "PERIHELION_PROMPTS_STYLE", any;
    }
}

section! {
    /// The log on standard error.
    Log, LogFile, "log" {
        /// A `tracing` filter, such as `info` or `perihelion=debug,warn`.
        filter: String = "warn".to_owned(), "PERIHELION_LOG", not_empty;
        /// `text` or `json`.
        format: LogFormat = LogFormat::Text, "PERIHELION_LOG_FORMAT", any;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

impl LogFormat {
    /// Returns the format that the environment asks for: that of errors before the settings are read.
    pub fn of_environment(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let text = env("PERIHELION_LOG_FORMAT");
        text.and_then(|text| Self::from_text(&text).ok()).unwrap_or(Self::Text)
    }
}

impl Setting for LogFormat {}

/// A database address; `Debug` and `Display` leave the password out.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// [`Invalid::Database`] when the scheme is not `sqlite:`, `postgres:`, `postgresql:` or `memory:`.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        match text.split_once(':') {
            Some(("sqlite" | "postgres" | "postgresql" | "memory", _)) => Ok(Self(text)),
            _ => Err(Invalid::Database),
        }
    }

    /// Returns the whole address, password included: for connecting only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_postgres(&self) -> bool {
        self.0.starts_with("postgres")
    }

    /// Returns the address of an empty database that lasts as long as its user.
    pub fn in_memory() -> Self {
        Self("memory:".to_owned())
    }

    /// Returns the address of the usual file, under the user's data directory.
    pub fn in_data_directory() -> Self {
        Self(format!("sqlite:{}", data_directory().join("perihelion.db").display()))
    }
}

impl TryFrom<String> for DatabaseUrl {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl Setting for DatabaseUrl {}

impl std::fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.is_postgres() {
            return f.write_str(&self.0);
        }
        // A key-value query may carry a password as well, so nothing after `?` is shown.
        let shown = self.0.split('?').next().unwrap_or_default();
        match (shown.split_once("://"), shown.rsplit_once('@')) {
            (Some((scheme, rest)), Some((_, host))) => {
                let user = rest.split([':', '@']).next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{host}")
            }
            _ => f.write_str(shown),
        }
    }
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

/// Returns the directory of the user's data: `perihelion` under the user's data directory.
pub fn data_directory() -> PathBuf {
    let data = user_directory("XDG_DATA_HOME", ".local/share");
    data.unwrap_or_else(|| PathBuf::from(".perihelion"))
}

/// Returns the directory of the cache: `perihelion` under the user's cache directory.
pub fn cache_directory() -> Option<PathBuf> {
    user_directory("XDG_CACHE_HOME", ".cache")
}

/// Returns where running processes of this program make themselves known to each other.
pub fn processes_directory() -> Option<PathBuf> {
    Some(user_directory("XDG_STATE_HOME", ".local/state")?.join("processes"))
}

/// Returns `perihelion` in a base directory of the user: the variable's if that is absolute, else the default below the home directory.
fn user_directory(variable: &str, default: &str) -> Option<PathBuf> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty())?;
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    Some(named.unwrap_or_else(|| home.join(default)).join("perihelion"))
}
