//! Messages of the conversation, and how they are merged by ID (S1.01).

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::{Sources, node};
use perihelion_engine::graph::{Dict, Log};
use perihelion_llm::Attached;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    /// `user` or `assistant`, or another role that a client wrote; [`REMOVE`] in an update.
    pub role: String,
    /// The agent that spoke; absent for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub content: String,
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
    /// Citations of an answer without a source, which were removed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub citations_removed: u64,
}

/// How the IDs of answers to questions of the supervisor end.
const CLARIFICATION: &str = ".clarification";

/// The role of a message that removes the one with its ID.
pub const REMOVE: &str = "remove";

/// The ID by which a message of role [`REMOVE`] removes all messages before it.
pub const REMOVE_ALL: &str = "__remove_all__";

/// The messages of a conversation in their order, each found by its ID however many there are; stored as the list alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Log<Message>", into = "Log<Message>")]
pub struct Messages {
    list: Log<Message>,
    places: Dict<usize>,
}

impl Messages {
    fn push(&mut self, message: Message) {
        self.places.insert_mut(message.id.clone(), self.list.len());
        self.list.push_back_mut(message);
    }
}

impl Deref for Messages {
    type Target = Log<Message>;

    fn deref(&self) -> &Log<Message> {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = <&'a Log<Message> as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<T: IntoIterator<Item = Message>>(messages: T) -> Self {
        let mut all = Self::default();
        messages.into_iter().for_each(|message| all.push(message));
        all
    }
}

impl From<Log<Message>> for Messages {
    fn from(list: Log<Message>) -> Self {
        let places = list.iter().enumerate().map(|(at, message)| (message.id.clone(), at));
        Self { places: places.collect(), list }
    }
}

impl From<Messages> for Log<Message> {
    fn from(messages: Messages) -> Self {
        messages.list
    }
}

/// Merges messages by ID: a known message is replaced in its place, a new one is appended.
///
/// A replaced message keeps its taint, so that sending it again cannot remove the mark. Only a removal takes time
/// proportional to the number of messages.
pub fn merge_messages(current: &mut Messages, more: Messages) {
    for message in &more {
        if message.role == REMOVE {
            let stays = |one: &&Message| message.id != REMOVE_ALL && one.id != message.id;
            *current = current.iter().filter(stays).cloned().collect();
            continue;
        }
        let known = current.places.get(&message.id).copied();
        match known.and_then(|at| Some((at, current.get(at)?))) {
            None => current.push(message.clone()),
            Some((_, known)) if known.role == message.role && known.content == message.content => {}
            Some((at, known)) => {
                let mut message = message.clone();
                message.tainted_by.extend(known.tainted_by.iter().cloned());
                current.list.set_mut(at, message);
            }
        }
    }
}

impl Message {
    /// Makes a message of a step of a turn, in the words of a role.
    pub(super) fn new(
        (turn, step, what): (u32, u64, &str),
        role: &str,
        content: impl Into<String>,
    ) -> Self {
        Self {
            id: message_id(turn, step, what),
            role: role.to_owned(),
            content: content.into(),
            ..Self::default()
        }
    }

    pub fn is_answer(&self) -> bool {
        self.name.as_deref() == Some(node::QA)
    }

    /// Returns whether it answers a question of the supervisor, and so continues a turn.
    pub fn is_clarification(&self) -> bool {
        self.role == "user" && self.id.ends_with(CLARIFICATION)
    }

    /// Returns whether it is a message between user, supervisor and QA, and not an agent's report.
    pub(super) fn is_talk(&self) -> bool {
        self.name.as_deref().is_none_or(|name| [node::SUPERVISOR, node::QA].contains(&name))
    }
}

/// Returns the ID of a message of a step of a turn.
///
/// Steps are numbered on each branch of a thread, so a client distinguishes messages of two branches by their IDs.
pub fn message_id(turn: u32, step: u64, what: &str) -> String {
    format!("{turn}.{step}.{what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{GraphState, GraphUpdate};
    use perihelion_engine::graph::State as _;

    fn message(id: &str, role: &str, content: &str) -> Message {
        Message {
            id: id.into(),
            role: role.into(),
            name: None,
            content: content.into(),
            tainted_by: Sources::new(),
            attached: Vec::new(),
            citations_removed: 0,
        }
    }

    /// S1.01, X5
    #[test]
    fn messages_are_merged_by_id_and_keep_their_taint() {
        let mut state = GraphState::default();
        let mut write = |messages: Vec<Message>| {
            state.apply(GraphUpdate::new().messages(messages.into_iter().collect()));
            let shown = state.messages.iter().map(|one| format!("{}={}", one.id, one.content));
            (shown.collect::<Vec<_>>().join(" "), state.messages.clone())
        };
        let open = Message { tainted_by: ["web".to_owned()].into(), ..message("a", "user", "1") };
        assert_eq!(write(vec![open, message("b", "assistant", "2")]).0, "a=1 b=2");
        let (shown, messages) = write(vec![message("a", "user", "3"), message("c", "user", "4")]);
        assert_eq!(shown, "a=3 b=2 c=4");
        assert_eq!(messages.get(0).unwrap().tainted_by, ["web".to_owned()].into());
        assert_eq!(write(vec![message("b", REMOVE, ""), message("x", REMOVE, "")]).0, "a=3 c=4");
        let all = vec![message(REMOVE_ALL, REMOVE, ""), message("d", "user", "5")];
        assert_eq!(write(all).0, "d=5");
    }

    /// A scan of the thread for each message would compare three thousand million IDs here.
    #[test]
    fn a_new_message_is_merged_as_fast_into_an_old_thread_as_into_a_young_one() {
        let began = perihelion_engine::clock::monotonic();
        let mut messages = Messages::default();
        for number in 0..80_000 {
            let more = [message(&number.to_string(), "user", "")].into_iter().collect();
            merge_messages(&mut messages, more);
        }
        assert_eq!(messages.len(), 80_000);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn messages_are_stored_as_a_list_and_found_again() {
        let stored = serde_json::json!([message("a", "user", "1"), message("b", "user", "2")]);
        let mut messages: Messages = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&messages).unwrap(), stored);
        let more = [message("a", "user", "3"), message("c", "user", "4")];
        merge_messages(&mut messages, more.into_iter().collect());
        let shown: Vec<&str> = messages.iter().map(|one| one.content.as_str()).collect();
        assert_eq!(shown, ["3", "2", "4"]);
    }
}
