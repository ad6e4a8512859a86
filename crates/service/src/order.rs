//! What a run is asked to do, as it is kept until somebody drives it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Error;
use super::kept::Run;
use perihelion_engine::graph::Pauses;
use perihelion_engine::runner::{Durability, RunOptions};
use perihelion_runtime::Answer;
pub use perihelion_settings::config::Approvals;
use perihelion_star::{Attachment, GraphState, Message, Request};

/// Namespace of the ids of assistants that a graph has by itself.
const NAMESPACE: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

/// Returns the id of the assistant that a graph has by itself.
pub fn assistant_of(graph: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, graph.as_bytes())
}

/// What a run is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub asked: Asked,
    /// The step that the thread goes back to first.
    #[serde(default)]
    pub at: Option<u64>,
    /// `sync`, `async` or `exit`.
    #[serde(default)]
    pub durability: Option<String>,
    /// Super-steps of the run.
    #[serde(default)]
    pub max_steps: Option<u64>,
    /// Who asked for it.
    #[serde(default)]
    pub by: Option<String>,
    /// In whose name it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether it may be done in a thread of its own user alone, and in one of nobody's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bound: bool,
    /// Nodes before and after which the run pauses.
    #[serde(default, skip_serializing_if = "Pauses::is_empty")]
    pub pauses: Pauses,
    /// The clarification that its thread waited for when a message was sent, which is the answer to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarifies: Option<Uuid>,
}

impl Order {
    /// Reads what a run is asked to do.
    ///
    /// # Errors
    /// [`Error::Update`] where another version wrote what this one cannot read.
    pub fn of(run: &Run) -> Result<Self, Error> {
        Self::deserialize(&run.kwargs["order"]).map_err(|error| Error::Update(error.to_string()))
    }

    /// Returns whether it begins a turn: a message that answers a clarification does not.
    pub fn begins_turn(&self) -> bool {
        self.asked.is_turn() && self.clarifies.is_none()
    }

    /// Returns the turn, where it begins or continues one by a message.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.asked {
            Asked::Turn(turn) => Some(turn),
            _ => None,
        }
    }
}

/// The kinds of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one is made for a run, and nothing keeps many")]
pub enum Asked {
    /// A turn of the conversation.
    Turn(Turn),
    /// Answers to open questions, as the client wrote them.
    Resume(Value),
    /// The answer to one open question; a question that is closed by then keeps the answer that it has.
    Answer { question: Uuid, answer: Answer },
    /// An input of a graph of the program's own.
    Input { graph: String, input: Value },
    /// An edit of the state, from which the thread continues.
    Edit { update: Value, as_node: Option<String>, goto: Vec<String> },
    /// To continue from where the thread stands.
    #[serde(rename = "go_on")]
    Continue,
}

/// A request as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub question: String,
    /// Messages that are merged into the conversation before the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    #[serde(default)]
    pub context: BTreeMap<String, String>,
    #[serde(default)]
    pub prefer_agents: Vec<String>,
    #[serde(default)]
    pub disable_agents: Vec<String>,
    /// The team that does the whole work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The id under which its client knows the message that is the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Whose request it is, by the name under which they are remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub include_data: bool,
    #[serde(default)]
    pub trace: bool,
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// The JSON Schema that the answer must match; none: the answer is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
    /// Images and files that come with the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What becomes of calls that need a person's approval; none: as the service is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<Approvals>,
    /// Whether a client follows the run as it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
}

impl Turn {
    /// Makes the request that the runtime takes.
    pub fn request(&self) -> Request {
        Request {
            question: self.question.clone(),
            messages: self.messages.clone(),
            context: self.context.clone(),
            prefer: self.prefer_agents.clone(),
            disable: self.disable_agents.clone(),
            max_turns: self.max_turns,
            system_prompt: self.system_prompt.clone(),
            answer_schema: self.answer_schema.clone(),
            team: self.team.clone(),
            user: self.user.clone(),
            message_id: self.message_id.clone(),
            attachments: self.attachments.clone(),
            skip_approvals: self.approvals == Some(Approvals::Skip),
            interactive: self.interactive,
            ..Request::default()
        }
    }
}

impl Asked {
    /// Returns whether it begins a turn, unless its thread waits for a clarification.
    pub fn is_turn(&self) -> bool {
        matches!(self, Self::Turn(_) | Self::Input { .. })
    }
}

impl Order {
    /// Asks for a kind of work, with nothing else said.
    pub fn new(asked: Asked) -> Self {
        Self {
            asked,
            at: None,
            durability: None,
            max_steps: None,
            by: None,
            user: None,
            is_bound: false,
            pauses: Pauses::default(),
            clarifies: None,
        }
    }

    /// Brings what the order says into the options of a run.
    pub(super) fn applied_to(&self, mut options: RunOptions<GraphState>) -> RunOptions<GraphState> {
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
