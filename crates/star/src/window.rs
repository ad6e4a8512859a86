//! The view of each role on the state: windows, never the whole (S1.06).

use serde_json::{Value, json};

use crate::{AgentResult, Artifact, Assignment, GraphState, Message, ResultStatus};
use perihelion_engine::graph::NodeError;
use perihelion_llm as llm;

const AGENT_MESSAGES: usize = 5;

/// Messages of the session that the supervisor sees.
const SESSION_MESSAGES: usize = 20;

/// Characters of a message, and of a result that the supervisor sees.
pub(super) const OUTPUT_CHARS: usize = 4_000;

/// Characters of a result that QA sees.
pub(super) const ANSWER_CHARS: usize = 24_000;

/// Maximum number of listed artifacts, those of the present turn first.
const ARTIFACTS: usize = 30;

/// Characters of an artifact where artifacts are listed.
const LISTED_CHARS: usize = 300;

/// Parts of the keys of the request's context whose values no model sees.
const SECRETS: &str =
    "accesskey apikey authorization bearer cookie credential header passw privatekey secret token";

/// Returns whether the value of a key of the request's context is for servers only.
pub(super) fn is_secret(key: &str) -> bool {
    let letters = key.chars().filter(|letter| letter.is_alphanumeric());
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    plain == "auth" || SECRETS.split(' ').any(|part| plain.contains(part))
}

/// Returns the request's context, with the caller's preferences, as keys and values; without secrets, the hours at
/// which the present day begins and ends, and the date where the time begins with it.
pub(super) fn context(state: &GraphState) -> Vec<Value> {
    let entry = |key: &str, value: &str| json!({ "key": key, "value": value });
    let date = state.request_context.get("current_date").map_or("", String::as_str);
    let is_in_time = state
        .request_context
        .get("current_datetime_utc")
        .is_some_and(|time| !date.is_empty() && time.starts_with(date));
    let says_more = |(key, value): &(&String, &String)| {
        let is_hour = key.starts_with("current_date_")
            && value.strip_prefix(date).is_some_and(|hour| matches!(hour, " 00" | " 23"));
        let is_date = is_in_time && *key == "current_date";
        !is_hour && !is_date && !is_secret(key)
    };
    let given = state.request_context.iter().filter(says_more);
    let given = given.map(|(key, value)| entry(key, value));
    let preferred = state.preferences.prefer.join(", ");
    let preferred = (!preferred.is_empty()).then(|| entry("preferred_agents", &preferred));
    given.chain(preferred).collect()
}

/// Returns the messages of user, supervisor and QA, without the present request and the agents' reports.
pub(super) fn history(state: &GraphState) -> Vec<Value> {
    of_talk(state).into_iter().map(shown).collect()
}

pub(super) fn of_talk(state: &GraphState) -> Vec<&Message> {
    let request = state.request_id();
    last(state, SESSION_MESSAGES, |message| message.id != request && message.is_talk())
}

/// Returns the last messages, except those that an agent gets as the inputs of its task; all messages for an agent that
/// gets the request itself.
pub(super) fn recent_beside(state: &GraphState, assignment: &Assignment) -> Vec<Value> {
    if assignment.is_direct() {
        return history(state);
    }
    let given = |message: &Message| {
        let content = message.content.trim();
        let mut outputs = assignment.dependency_outputs.iter();
        message.name.is_some() && outputs.any(|one| one.output.trim() == content)
    };
    of_late(state).into_iter().filter(|message| !given(message)).map(shown).collect()
}

/// Returns the last messages, no matter who spoke.
pub(super) fn of_late(state: &GraphState) -> Vec<&Message> {
    last(state, AGENT_MESSAGES, |_| true)
}

fn last(state: &GraphState, count: usize, shown: impl Fn(&&Message) -> bool) -> Vec<&Message> {
    let mut messages: Vec<&Message> = state.newest_messages().filter(shown).take(count).collect();
    messages.reverse();
    messages
}

fn shown(message: &Message) -> Value {
    let content = clip(&message.content, OUTPUT_CHARS);
    json!({ "role": message.role, "name": message.name, "content": content })
}

/// Returns the turn's results, numbered as in citations, each cut to a number of characters.
pub(super) fn results(state: &GraphState, chars: usize) -> Vec<Value> {
    let result = |(number, result): (usize, &AgentResult)| {
        let output = clip(&result.uncited_output(), chars);
        json!({
            "number": number,
            "agent": result.agent,
            "status": match result.status {
                ResultStatus::Success if result.is_unverified() => "unverified",
                ResultStatus::Success => "success",
                ResultStatus::Failed if result.not_mine => "not_mine",
                ResultStatus::Failed => "failed",
            },
            "task": result.task,
            // What people who approved its calls wanted besides.
            "instructions": result.instructions,
            "output": match &result.error {
                Some(error) if result.output.is_empty() => format!("failed: {error}"),
                Some(error) => format!("failed: {error}\n{output}"),
                None => output,
            },
        })
    };
    (1..).zip(state.results_of_turn()).map(result).collect()
}

/// Returns keys and beginnings of the blackboard's artifacts, those of the present turn first.
pub(super) fn artifacts(state: &GraphState) -> Vec<Value> {
    let shown = |(key, artifact): (&String, &Artifact)| json!({ "key": key, "preview": clip(&artifact.preview, LISTED_CHARS) });
    listed(state).map(shown).collect()
}

pub(super) fn listed(state: &GraphState) -> impl Iterator<Item = (&String, &Artifact)> {
    let own = format!("{}.", state.turn);
    // Keys begin with the turn, and `/` is the character that follows `.`.
    let turn = own.clone()..format!("{}/", state.turn);
    let present = state.global_state.range(turn);
    let earlier = state.global_state.iter().filter(move |(key, _)| !key.starts_with(&own));
    present.chain(earlier).take(ARTIFACTS)
}

/// Cuts a text to a number of characters, and marks the cut.
pub(super) fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters in all)", &text[..end], text.chars().count()),
    }
}

/// A template that cannot be rendered is a matter for the operator, so it fails the node.
pub(super) fn prompt_failed(error: llm::Error) -> NodeError {
    NodeError::failed("prompt", error.to_string())
}
