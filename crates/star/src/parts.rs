//! The parts that the star's nodes share, the bounds of a turn, and the trace context of tool calls.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{Allowance, Experience, Founder, GraphState, Shapes, StarLimits};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::graph::{Graph, NodeLocation, State};
use perihelion_engine::runner::Runner;
use perihelion_llm::{ChatModel, Prompts};
use perihelion_mcp::ToolHost;
use perihelion_settings::config::Prices;

/// The field of a run's request with the [`Allowance`] of the turn that it begins.
pub const ALLOWANCE: &str = "allowance";

impl StarLimits {
    /// Returns the bounds of the present turn: those of its start, or stricter ones of its request.
    #[must_use]
    pub fn for_turn(&self, state: &GraphState) -> Self {
        let own = Self {
            menu: self.menu,
            approval_timeout: self.approval_timeout,
            interactive_approval_timeout: self.interactive_approval_timeout,
            asks_about_taint: self.asks_about_taint,
            // A turn that an earlier version began kept none.
            ..state.limits.unwrap_or(*self)
        };
        own.within(state.preferences.allowance)
    }

    /// Returns the bounds for a turn that a run begins: these, or stricter ones that its caller passes as [`ALLOWANCE`].
    pub(super) fn of_run(self, place: &NodeLocation) -> Self {
        let given = place.request.as_ref().and_then(|request| request.downcast_ref::<Value>());
        let given = given.and_then(|given| Allowance::deserialize(given.get(ALLOWANCE)?).ok());
        self.within(given)
    }

    fn within(self, allowed: Option<Allowance>) -> Self {
        let Some(allowed) = allowed else { return self };
        let both = Allowance {
            steps: Some(self.max_steps),
            tokens: self.max_tokens,
            nano_usd: self.max_nano_usd,
            tool_calls: self.turn_tool_calls,
            seconds: self.deadline_sec,
        }
        .within(allowed);
        Self {
            max_steps: both.steps.unwrap_or(self.max_steps),
            max_tokens: both.tokens,
            max_nano_usd: both.nano_usd,
            turn_tool_calls: both.tool_calls,
            deadline_sec: both.seconds,
            ..self
        }
    }
}

/// The store of the agents' subgraphs: the store of the threads that run them.
#[derive(Clone)]
pub struct Home {
    pub store: Arc<dyn Store>,
    /// How long a subgraph's lease lasts without renewal.
    pub lease: Duration,
}

impl Home {
    pub fn runner<S: State>(&self, graph: Arc<Graph<S>>) -> Runner<S> {
        let mut runner = Runner::new(graph, Arc::clone(&self.store));
        runner.lease = self.lease;
        runner
    }
}

/// Removes agents from the catalog while threads are open.
pub trait Withdraw: Send + Sync {
    /// Takes one out: its server says something else than it did when it was scanned.
    fn withdraw(&self, agent: &str, why: String);
}

#[derive(Clone)]
pub struct StarOptions {
    pub prompts: Arc<Prompts>,
    pub prices: Prices,
    pub limits: StarLimits,
    /// The store for agents that are graphs: the store of the threads.
    pub home: Home,
    /// Skills and memories; without it, no data outlives a thread.
    pub experience: Option<Arc<dyn Experience>>,
    /// Which form of a decision the supervisor's model is asked for.
    pub shapes: Shapes,
    /// Which form of a verdict the reflector's model is asked for.
    pub reviews: Shapes,
    pub style: Option<Arc<str>>,
    /// Stores teams that are designed during a run; without it, teams are not stored.
    pub founder: Option<Arc<dyn Founder>>,
}

pub struct StarParts {
    pub(super) options: StarOptions,
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) tools: Arc<dyn ToolHost>,
    pub(super) traces: Option<Arc<dyn TraceContext>>,
    pub(super) withdraw: Arc<dyn Withdraw>,
    /// The thread at the top, if this is the star of a team within another one.
    pub(super) top: Option<String>,
    /// How many teams the star is within.
    pub(super) depth: usize,
}

impl Deref for StarParts {
    type Target = StarOptions;

    fn deref(&self) -> &StarOptions {
        &self.options
    }
}

impl StarParts {
    /// Returns the thread ID for a model's endpoint: that of the thread at the top.
    pub(super) fn thread(&self, place: &NodeLocation) -> String {
        self.top.clone().unwrap_or_else(|| place.thread.to_string())
    }

    /// Returns the parts for a team's star within this one: its bounds are the remaining budgets of the turn.
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
            options: StarOptions { limits, founder: None, ..self.options.clone() },
            model: Arc::clone(&self.model),
            tools: Arc::clone(&self.tools),
            traces: self.traces.clone(),
            withdraw,
            top: Some(self.thread(place)),
            depth: self.depth + 1,
        }
    }
}

/// Names the span of a tool call before there is one, so that the server's own spans can hang under it.
#[async_trait]
pub trait TraceContext: Send + Sync {
    /// Returns the W3C `traceparent` of the call with this idempotency key; `None` if it is unknown.
    async fn traceparent(&self, place: &NodeLocation, key: &str) -> Option<String>;
}
