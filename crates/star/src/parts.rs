//! What the star's nodes share, and the bounds of their work.

use std::sync::Arc;
use std::time::Duration;

use super::allowance::Allowance;
use super::experience::Experience;
use super::founder::Founder;
use super::menu::MenuSize;
use super::state::GraphState;
use super::trace_context::TraceContext;
use perihelion_engine::checkpoint::Store;
use perihelion_engine::graph::{Graph, NodeLocation, State};
use perihelion_engine::runner::Runner;
use perihelion_llm::{ChatModel, Prompts};
use perihelion_mcp::ToolHost;
use perihelion_settings::config::Prices;

/// Bounds of the star's work, and what it asks people about; a reached bound leads to QA, not to an error.
#[derive(Clone, Copy, Debug)]
pub struct StarLimits {
    /// Super-steps of one turn.
    pub max_steps: u64,
    /// Tokens of one turn.
    pub max_tokens: Option<u64>,
    /// Billionths of a US dollar of one turn.
    pub max_nano_usd: Option<u64>,
    /// Seconds of one run; waiting for people ends a run, so it is not counted.
    pub deadline_sec: Option<u64>,
    /// Tool calls for one task.
    pub max_tool_calls: u32,
    /// Tool calls of one turn.
    pub turn_tool_calls: Option<u64>,
    /// What a team may take at most of what is left, for one task.
    pub of_teams: Allowance,
    /// Times a rejected output is sent back.
    pub max_reflections: u32,
    /// Bytes above which a tool result becomes an artifact.
    pub result_bytes: usize,
    /// Repeated routings without progress at which the breaker trips.
    pub breaker_retries: u32,
    /// Agents that the supervisor is shown.
    pub menu: MenuSize,
    /// Tools up to which an agent is shown all of its server's; of more, this many that fit its task.
    pub agent_tools: usize,
    /// How long a request for approval can be answered.
    pub approval_timeout: Duration,
    /// The same where somebody sits in front of the run.
    pub interactive_approval_timeout: Duration,
    /// Whether a person approves calls that the open world may have led to.
    pub asks_about_taint: bool,
}

impl StarLimits {
    /// Returns the bounds of the present turn: these, or what its request allows where that is tighter.
    #[must_use]
    pub fn for_turn(&self, state: &GraphState) -> Self {
        let Some(allowed) = state.preferences.allowance else { return *self };
        let own = Allowance {
            steps: Some(self.max_steps),
            tokens: self.max_tokens,
            nano_usd: self.max_nano_usd,
            tool_calls: self.turn_tool_calls,
            seconds: self.deadline_sec,
        };
        let both = own.within(allowed);
        Self {
            max_steps: both.steps.unwrap_or(self.max_steps),
            max_tokens: both.tokens,
            max_nano_usd: both.nano_usd,
            turn_tool_calls: both.tool_calls,
            deadline_sec: both.seconds,
            ..*self
        }
    }
}

/// Where the subgraphs of agents are kept: beside the threads that run them.
#[derive(Clone)]
pub struct Home {
    pub store: Arc<dyn Store>,
    /// How long a subgraph's lease lasts without renewal.
    pub lease: Duration,
}

impl Home {
    /// Returns a runner for a subgraph of a thread.
    pub fn runner<S: State>(&self, graph: Arc<Graph<S>>) -> Runner<S> {
        Runner::new(graph, Arc::clone(&self.store)).with_lease(self.lease)
    }
}

/// Takes agents out of the menu while threads are open.
pub trait Withdraw: Send + Sync {
    /// Takes one out: its server says something else than it did when it was scanned.
    fn withdraw(&self, agent: &str, why: String);
}

/// What the star's nodes share.
pub struct StarParts {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) tools: Arc<dyn ToolHost>,
    pub(super) prompts: Arc<Prompts>,
    pub(super) prices: Prices,
    pub(super) limits: StarLimits,
    pub(super) traces: Option<Arc<dyn TraceContext>>,
    pub(super) home: Home,
    pub(super) withdraw: Arc<dyn Withdraw>,
    /// None: nothing outlives a thread.
    pub(super) experience: Option<Arc<dyn Experience>>,
    /// Rules of style for answers.
    pub(super) style: Option<Arc<str>>,
    /// The thread at the top, where the star is a team's within another one.
    pub(super) top: Option<String>,
    /// How many teams the star is within.
    pub(super) depth: usize,
    /// Keeps teams that are designed while a run is under way; none: none are.
    pub(super) founder: Option<Arc<dyn Founder>>,
}

impl StarParts {
    /// Returns the thread that a model's endpoint is told of: the one at the top.
    pub(super) fn thread(&self, place: &NodeLocation) -> String {
        self.top.clone().unwrap_or_else(|| place.thread.to_string())
    }

    /// Returns the parts of a team's star within this one: what is left of the turn's budgets is its bound.
    pub(super) fn of_team(
        &self,
        place: &NodeLocation,
        state: &GraphState,
        withdraw: Arc<dyn Withdraw>,
    ) -> Self {
        let spent = state.spent_in_turn();
        let bounds = self.limits.for_turn(state);
        let limits = StarLimits {
            max_tokens: bounds.max_tokens.map(|most| most.saturating_sub(spent.usage.total())),
            max_nano_usd: bounds.max_nano_usd.map(|most| most.saturating_sub(spent.nano_usd)),
            ..bounds
        };
        Self {
            model: Arc::clone(&self.model),
            tools: Arc::clone(&self.tools),
            prompts: Arc::clone(&self.prompts),
            prices: self.prices.clone(),
            limits,
            traces: self.traces.clone(),
            home: self.home.clone(),
            withdraw,
            experience: self.experience.clone(),
            style: self.style.clone(),
            top: Some(self.thread(place)),
            depth: self.depth + 1,
            founder: None,
        }
    }
}
