//! Messages of the conversation, and how they are merged by ID (S1.01).

use serde::{Deserialize, Serialize};

use super::node;
use super::sources::Sources;
use perihelion_engine::graph::Log;
use perihelion_llm::Attached;

/// One message of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    /// `user` or `assistant`, or another role that a client wrote; [`REMOVE`] in an update.
    pub role: String,
    /// The agent that spoke; absent for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub content: String,
    /// What of the open world stands behind it.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
    /// Images and files that came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
    /// Citations of an answer that named nothing and were removed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub citations_removed: u64,
}

/// The role of a message that removes the one with its ID.
pub const REMOVE: &str = "remove";

/// The ID by which a message of role [`REMOVE`] removes all messages before it.
pub const REMOVE_ALL: &str = "__remove_all__";

/// Merges messages by ID: a known one is replaced where it is, a new one is appended.
///
/// A replaced message keeps its taint, so that sending it again cannot remove the mark. Takes as long as there are
/// messages, for each that is merged.
pub(super) fn merge_messages(current: &mut Log<Message>, more: Log<Message>) {
    for message in &more {
        if message.role == REMOVE {
            let is_removed = |one: &&Message| message.id == REMOVE_ALL || one.id == message.id;
            *current = current.iter().filter(|one| !is_removed(one)).cloned().collect();
            continue;
        }
        match current.iter().enumerate().rev().find(|(_, one)| one.id == message.id) {
            None => current.push_back_mut(message.clone()),
            Some((_, known)) if known.is_same_text(message) => {}
            Some((at, known)) => {
                let mut message = message.clone();
                message.tainted_by.extend(known.tainted_by.iter().cloned());
                current.set_mut(at, message);
            }
        }
    }
}

impl Message {
    /// Makes what somebody says in a step of a turn, in the words of a role.
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

    fn is_same_text(&self, other: &Self) -> bool {
        self.role == other.role && self.content == other.content
    }

    pub(super) fn is_answer(&self) -> bool {
        self.name.as_deref() == Some(node::QA)
    }

    /// Tells whether it was said between user, supervisor and QA, and is no report of an agent's.
    pub(super) fn is_talk(&self) -> bool {
        self.name.as_deref().is_none_or(|name| [node::SUPERVISOR, node::QA].contains(&name))
    }
}

/// Returns the id of what somebody says in a step of a turn.
///
/// Steps are numbered on each branch of a thread, so a client tells messages of two branches apart by their IDs.
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
}
