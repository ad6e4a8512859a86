//! The state of the star: one struct, one reducer per field (S1.01).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Allowance, Assignment, EarlyEnd, Sources, StarLimits, message::merge_messages};

pub use super::message::{Message, Messages, REMOVE, REMOVE_ALL, message_id};
use super::result::AgentResult;
use perihelion_engine::graph::{Blob, Blobs, Dict, Log};
use perihelion_llm::{Attached, Usage};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Unique in the thread: turn, round, and the supervisor's own id.
    pub id: String,
    pub agent: String,
    pub task: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    pub turn: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Citation {
    /// Number used in the answer, counted from 1 within the turn; that of the agent's result.
    pub number: usize,
    pub agent: String,
    /// `server.tool`.
    pub source: String,
    pub arguments: Value,
    pub turn: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub source: String,
    /// The first characters, shown to models in place of the whole.
    pub preview: String,
    /// Length of the whole, in bytes.
    pub bytes: usize,
    /// The complete content; stored separately after its step is merged, unless it is short.
    pub content: Blob,
    /// Its media type, if the content is base64 and not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
}

impl Artifact {
    pub(super) fn digest(&self) -> [u8; 32] {
        self.content.name().hash
    }
}

impl Blobs for Artifact {
    fn each_blob(&self, see: &mut dyn FnMut(&Blob)) {
        see(&self.content);
    }

    fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut Blob)) {
        see(&mut self.content);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preferences {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefer: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disable: Vec<String>,
    /// Decisions that the supervisor may take in the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// How the user wants the work done and the answer put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
    /// Work that would wait for an approval is not done.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub skip_approvals: bool,
    /// A person waits in front of it, so requests for approval expire soon.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub interactive: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
    /// The id under which its client knows the message that is the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The team that does the whole work, by its agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Bounds of the turn in addition to the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Allowance>,
    /// The open-world sources of the request itself, for the star of a team.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
    /// The addresses in the request that no person wrote and no result contains, for the star of a team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invented: Vec<String>,
}

/// A decision that chose agents, and how far the turn was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Sorted.
    pub agents: Vec<String>,
    pub progress: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// Agents of the previous decision, sorted.
    pub last: Vec<String>,
    /// Digest of the progress at the previous decision.
    pub progress: String,
    /// The decisions of this turn before the previous one, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Decided>,
    pub retry_count: u32,
    pub round: u32,
    /// Tasks handed out last, whose results are awaited.
    pub dispatched: Vec<String>,
    pub first_step: u64,
    /// The id of the message that is the turn's request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Time at which the turn began, in microseconds since the Unix epoch.
    pub started_at: i64,
    pub results_before: usize,
    pub spent_before: Spent,
    /// A question for the user that was not asked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub asked: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Search>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    pub query: String,
    /// Names of agents, best first.
    pub found: Vec<String>,
    /// Whether one of them was hidden from the catalog.
    pub is_new: bool,
    /// The decision that asked for it, counted from 1 within the turn.
    pub round: u32,
}

/// How the present turn was planned (S2.03, S2.09).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Planner {
    pub turn: u32,
    pub rationale: String,
    /// Agents in the order in which they were given tasks.
    pub order: Vec<String>,
    /// From 0 to 1, if the supervisor gave it.
    pub confidence: Option<f64>,
    /// Agents that could be chosen; of the first decision those first that fit the request.
    pub candidates: Vec<String>,
    pub guardrails: Vec<String>,
    /// Whether the agents were chosen by words, because the model failed.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub by_words: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub text: String,
    /// The last turn that it covers.
    pub turn: u32,
    /// How many messages the thread had when it was made.
    #[serde(default)]
    pub messages: usize,
    /// The ID of the newest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    #[serde(flatten)]
    pub usage: Usage,
    /// Billionths of a US dollar, for models with prices.
    #[serde(default)]
    pub nano_usd: u64,
    /// Super-steps that teams took.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub steps: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.nano_usd = self.nano_usd.saturating_add(other.nano_usd);
        self.steps = self.steps.saturating_add(other.steps);
    }
}

perihelion_engine::graph_state! {
    /// The state of the star; appended items are never lost.
    ///
    /// Version 2 has the fields of version 1, but other journal keys: a program that knows only version 1 would not
    /// find earlier calls, and repeat them. Version 3 has typed errors in its results.
    pub struct GraphState, update GraphUpdate, version 3, blobs [global_state] {
        /// The user's present request.
        input_request: String => overwrite,
        /// Free key-values that came with it, and the temporal context.
        request_context: BTreeMap<String, String> => overwrite,
        preferences: Preferences => overwrite,
        /// The user, by the name of their memories.
        user: Option<String> => overwrite,
        /// The bounds with which the present turn began.
        limits: Option<StarLimits> => overwrite,
        /// Number of the request in the thread, from 1.
        turn: u32 => overwrite,
        /// Merged by id; an update can also take messages away.
        messages: Messages => with(merge_messages),
        tasks: Log<TaskRecord> => append,
        results: Log<AgentResult> => append,
        citations: Log<Citation> => append,
        plan: Vec<String> => overwrite,
        /// The supervisor's last target.
        next_step: Vec<String> => overwrite,
        /// The shared blackboard: artifacts by key.
        global_state: Dict<Artifact> => merge,
        /// Stages of the plan that have not started.
        stages: Vec<Vec<Assignment>> => overwrite,
        routing: Routing => overwrite,
        /// Notes for the supervisor about its own mistakes and about agents that failed.
        errors: Vec<String> => overwrite,
        /// Why the run went to QA, when it was not because the work was done.
        finish_reason: Option<EarlyEnd> => overwrite,
        answer: Option<String> => overwrite,
        /// How the newest turn with a decision was planned.
        planner: Option<Planner> => overwrite,
        /// The summary of the conversation so far.
        summary: Option<Summary> => overwrite,
        /// The cost of model calls in the thread.
        spent: Spent => with(std::ops::AddAssign::add_assign),
    }
}

impl GraphState {
    /// Returns the message that asks for the next turn, whose input the state already has; `step` opens that turn.
    pub fn next_request(&self, step: u64) -> Message {
        let Preferences { message_id: named, tainted_by, attached, .. } = &self.preferences;
        Message {
            id: named.clone().unwrap_or_else(|| message_id(self.turn + 1, step, "user")),
            role: "user".into(),
            content: self.input_request.clone(),
            tainted_by: tainted_by.clone(),
            attached: attached.clone(),
            ..Message::default()
        }
    }

    pub(super) fn request_id(&self) -> String {
        let known = self.routing.request.as_ref().or(self.preferences.message_id.as_ref());
        // A turn that an earlier version began names none.
        known.cloned().unwrap_or_else(|| format!("{}.user", self.turn))
    }

    /// Returns the results of the present turn, in the order in which they came.
    ///
    /// The time grows with the results of the turn, not with the age of the thread.
    pub fn results_of_turn(&self) -> impl Iterator<Item = &AgentResult> {
        (self.routing.results_before..self.results.len())
            .filter_map(|index| self.results.get(index))
            .filter(|result| result.turn == self.turn)
    }

    pub fn result_of(&self, task: &str) -> Option<&AgentResult> {
        self.results_of_turn().find(|result| result.id == task)
    }

    pub fn spent_in_turn(&self) -> Spent {
        let now = self.spent;
        let before = self.routing.spent_before;
        Spent {
            usage: Usage {
                input_tokens: now.usage.input_tokens.saturating_sub(before.usage.input_tokens),
                output_tokens: now.usage.output_tokens.saturating_sub(before.usage.output_tokens),
                cached_tokens: now.usage.cached_tokens.saturating_sub(before.usage.cached_tokens),
                estimated: now.usage.estimated,
            },
            nano_usd: now.nano_usd.saturating_sub(before.nano_usd),
            steps: now.steps.saturating_sub(before.steps),
        }
    }

    pub fn tool_calls_of_turn(&self) -> u64 {
        self.results_of_turn().map(|result| result.tools.len() as u64).sum()
    }

    /// Returns how many citations of the present turn had no source and were removed: of its results, and of its
    /// answer.
    pub fn citations_removed_of_turn(&self) -> u64 {
        let of_results: u64 = self.results_of_turn().map(|result| result.citations_removed).sum();
        let of_answer = self.newest_messages().next().filter(|message| message.is_answer());
        of_results + of_answer.map_or(0, |message| message.citations_removed)
    }

    /// Returns the answer of a turn; `None` without one, or if it was deleted.
    pub fn answer_of(&self, turn: u32) -> Option<&Message> {
        let begins = format!("{turn}.");
        self.newest_messages()
            .find(|message| message.is_answer() && message.id.starts_with(&begins))
    }

    pub(super) fn newest_messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().rev()
    }

    pub fn usage_of_turn(&self) -> Usage {
        self.spent_in_turn().usage
    }
}
