//! The request of a run, stored until a process drives it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::kept::Run;
use super::{Error, Result, Service};
use perihelion_engine::graph::Pauses;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Durability, RunOptions};
use perihelion_runtime::Answer;
pub use perihelion_settings::config::Approvals;
use perihelion_star::{ALLOWANCE, Allowance, GRAPH, GraphState, Request};

/// Namespace of the IDs of the default assistants of graphs.
const NAMESPACE: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

/// Returns the ID of a graph's default assistant.
pub fn assistant_of(graph: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, graph.as_bytes())
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub asked: Asked,
    /// The edit that a hosted graph makes together with the answers of [`Asked::Resume`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub along: Option<Along>,
    /// The step that the thread goes back to first.
    #[serde(default)]
    pub at: Option<u64>,
    /// `sync`, `async` or `exit`.
    #[serde(default)]
    pub durability: Option<String>,
    #[serde(default)]
    pub max_steps: Option<u64>,
    /// The user who requested it.
    #[serde(default)]
    pub by: Option<String>,
    /// The user on whose behalf it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether it is permitted only in a thread of its own user, or in one without a user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bound: bool,
    /// Whether who asked for it cannot decide requests for approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cannot_approve: bool,
    /// Nodes before and after which the run pauses.
    #[serde(default, skip_serializing_if = "Pauses::is_empty")]
    pub pauses: Pauses,
    /// The clarification that its thread waited for when a message was sent, which is the answer to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarifies: Option<Uuid>,
}

impl Order {
    /// Reads the request of a run.
    ///
    /// # Errors
    /// [`Error::Update`] if it has the form of another version that this one cannot read.
    pub fn of(run: &Run) -> Result<Self> {
        Self::deserialize(&run.kwargs["order"]).map_err(Error::Update)
    }

    /// Returns whether it begins a turn: a message that answers a clarification does not.
    pub fn begins_turn(&self) -> bool {
        self.asked.is_turn() && self.clarifies.is_none()
    }

    /// Returns whether it answers an open question of the thread as it stands.
    pub(super) fn answers(&self) -> bool {
        self.at.is_none() && matches!(self.asked, Asked::Resume(_) | Asked::Answer { .. })
    }

    /// Returns the turn, if a message begins or continues one.
    pub fn turn(&self) -> Option<&Request> {
        match &self.asked {
            Asked::Turn(turn) => Some(turn),
            _ => None,
        }
    }
}

/// An update of the state and the nodes or Sends that run next, by an ID with which it is made once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Along {
    pub id: Uuid,
    pub update: Value,
    pub goto: Vec<Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one is made for a run, and nothing keeps many")]
pub enum Asked {
    /// A turn of the conversation.
    Turn(Request),
    /// Answers to open questions, as the client wrote them.
    Resume(Value),
    /// The answer to one open question; a question that is closed by then keeps the answer that it has.
    Answer { question: Uuid, answer: Answer },
    /// An input of a graph of the program's own.
    Input { graph: String, input: Value },
    /// An edit of the state, from which the thread continues.
    Edit { update: Value, as_node: Option<String>, goto: Vec<Value> },
    /// Continues from the thread's last step.
    #[serde(rename = "go_on")]
    Continue,
}

impl Asked {
    /// Returns whether it begins a turn, unless its thread waits for a clarification.
    pub fn is_turn(&self) -> bool {
        self.graph().is_some()
    }

    /// Returns the graph that it is an input of; `None` for what any graph takes.
    pub(super) fn graph(&self) -> Option<&str> {
        match self {
            Self::Turn(_) => Some(GRAPH),
            Self::Input { graph, .. } => Some(graph),
            _ => None,
        }
    }
}

impl Order {
    /// Makes a request for a kind of work with defaults.
    pub fn new(asked: Asked) -> Self {
        Self {
            asked,
            along: None,
            at: None,
            durability: None,
            max_steps: None,
            by: None,
            user: None,
            is_bound: false,
            cannot_approve: false,
            pauses: Pauses::default(),
            clarifies: None,
        }
    }

    /// Applies the order of a run to the options of its drive.
    fn applied_to(
        &self,
        mut options: RunOptions<GraphState>,
        run: &Run,
        allowance: Option<Allowance>,
    ) -> RunOptions<GraphState> {
        options.request = Some(Arc::new(json!({
            "run_id": run.id,
            "assistant_id": run.assistant,
            "metadata": run.metadata,
            "user": self.user.as_ref().or(self.by.as_ref()),
            "body": run.kwargs["shown"],
            (ALLOWANCE): allowance,
        })));
        options.durability = match self.durability.as_deref() {
            Some("async") => Durability::Async,
            Some("exit") => Durability::Exit,
            _ => Durability::Sync,
        };
        options.pauses = self.pauses.clone();
        if let Some(most) = self.max_steps {
            options.limits.max_steps = options.limits.max_steps.min(most);
        }
        options
    }
}

/// An order, as a drive carries it out.
pub(super) struct Ordered {
    pub order: Order,
    pub options: RunOptions<GraphState>,
    /// Whether the drive begins work, which counts in the budget of the day.
    pub begins_work: bool,
}

impl Service {
    /// Reads the order of a run, and applies it to the options of a drive, with what is left of the day.
    pub(super) async fn ordered(
        &self,
        run: &Run,
        options: RunOptions<GraphState>,
    ) -> Result<Ordered> {
        let order = Order::of(run)?;
        let begins_work = self.begins_work(ThreadId(run.thread), &order).await?;
        let allowance = if begins_work { self.left_of_day().await? } else { None };
        // Its clients follow the log.
        let publish = Some(Arc::clone(self.runtime().bus()));
        let options = order.applied_to(RunOptions { publish, ..options }, run, allowance);
        Ok(Ordered { order, options, begins_work })
    }
}
