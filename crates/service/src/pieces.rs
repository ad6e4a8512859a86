//! The events of a run for followers, and the messages of the active step, which its tasks send piece by piece.

use std::collections::BTreeMap;

use super::Checkpoint;
use chrono::{DateTime, Utc};
use perihelion_engine::graph::Interrupt;
use perihelion_runtime::{HostedEvent, ThreadState, Wrote};
use perihelion_star::message_id;
use serde_json::Value;

/// The messages of each task of the active step, by step and task.
#[derive(Clone, Debug, Default)]
pub(super) struct PartialMessages(BTreeMap<(u64, u32), MessageSoFar>);

#[derive(Clone, Debug, Default)]
struct MessageSoFar {
    text: String,
    /// The part of it that the active attempt has repeated.
    again: Option<String>,
    /// How often another text than before was begun.
    versions: u32,
}

impl PartialMessages {
    pub(super) fn begin_again(&mut self) {
        self.0.values_mut().for_each(|message| message.again = Some(String::new()));
    }

    /// Notes that a task begins, perhaps again.
    pub(super) fn begin_task(&mut self, step: u64, task: u32) {
        if let Some(message) = self.0.get_mut(&(step, task)) {
            message.again.get_or_insert_default();
        }
    }

    pub(super) fn end_step(&mut self, step: u64) {
        self.0.retain(|(of, _), _| *of > step);
    }

    /// Accepts a piece of a message of a step's task; pieces that another attempt repeats are not sent again.
    pub(super) fn take(
        &mut self,
        turn: u32,
        (step, task): (u64, u32),
        node: String,
        mut piece: String,
    ) -> Option<ThreadChange> {
        let so_far = self.0.entry((step, task)).or_default();
        let mut is_first = so_far.text.is_empty();
        if let Some(again) = &mut so_far.again {
            again.push_str(&piece);
            if so_far.text.starts_with(again.as_str()) {
                return None;
            }
            match again.strip_prefix(so_far.text.as_str()) {
                Some(more) => piece = more.to_owned(),
                None => {
                    // Another text than before: a message of its own, which the state's will replace.
                    (piece, is_first) = (again.clone(), true);
                    so_far.text.clear();
                    so_far.versions += 1;
                }
            }
            so_far.again = None;
        }
        so_far.text.push_str(&piece);
        let message = so_far.name(turn, step, &node);
        let text = so_far.text.clone();
        Some(ThreadChange::Piece { step, task, node, message, piece, text, is_first })
    }

    pub(super) fn streamed(&self, turn: u32, step: u64, written: &[Wrote]) -> Vec<String> {
        let named = (0_u32..).zip(written);
        let named = named
            .filter_map(|(task, one)| Some(self.0.get(&(step, task))?.name(turn, step, &one.node)));
        named.collect()
    }

    /// Returns the missing ends of a step's messages: the process that sent the first pieces died.
    pub(super) fn rest(&self, turn: u32, step: u64, written: &[Wrote]) -> Vec<ThreadChange> {
        let mut rest = Vec::new();
        for (task, one) in (0_u32..).zip(written) {
            let Some(so_far) = self.0.get(&(step, task)) else { continue };
            let mut replies = one.update.messages();
            replies.retain(|message| message.role != "user");
            let more = replies
                .iter()
                .filter_map(|message| message.content.strip_prefix(so_far.text.as_str()))
                .find(|more| !more.is_empty());
            if let Some(more) = more {
                let node = one.node.clone();
                let message = so_far.name(turn, step, &node);
                let text = format!("{}{more}", so_far.text);
                let piece = more.to_owned();
                let is_first = false;
                rest.push(ThreadChange::Piece { step, task, node, message, piece, text, is_first });
            }
        }
        rest
    }
}

impl MessageSoFar {
    fn name(&self, turn: u32, step: u64, node: &str) -> String {
        match self.versions {
            0 => message_id(turn, step, node),
            version => message_id(turn, step, &format!("{node}.{version}")),
        }
    }
}

/// Something that happened, with its place in the thread's log.
#[derive(Clone, Debug)]
pub struct LoggedChange {
    /// Number of the log's event; events made from the same log event share it.
    pub id: u64,
    /// The newest time that is known of it, the same for every follower: when the last step was durable, or the run asked
    /// for.
    pub at: DateTime<Utc>,
    pub is_first: bool,
    pub change: ThreadChange,
}

#[derive(Clone, Debug)]
pub enum ThreadChange {
    /// The run continues from a state that was there before it.
    ContinuesFrom {
        state: ThreadState,
    },
    TaskStarted {
        step: u64,
        task: u32,
        node: String,
        state: ThreadState,
    },
    TaskFailed {
        step: u64,
        task: u32,
        node: String,
        error: String,
    },
    /// A piece of a message; `text` is all of it so far.
    Piece {
        step: u64,
        task: u32,
        node: String,
        message: String,
        piece: String,
        text: String,
        is_first: bool,
    },
    /// An event of a hosted graph, as clients of its stream mode see it.
    Hosted(HostedEvent),
    Custom {
        node: String,
        payload: Value,
    },
    Step {
        at: Box<Checkpoint>,
        /// The last pieces of its messages, if they were not sent before.
        rest: Vec<ThreadChange>,
        /// The IDs of those of its messages that were sent in pieces.
        streamed: Vec<String>,
    },
    Interrupted {
        step: u64,
        interrupts: Vec<Interrupt>,
        /// The task of the step that asks each question; empty in events of older versions.
        asking: Vec<u32>,
        state: ThreadState,
    },
    /// A payload that a node of a subgraph published.
    Nested {
        namespace: String,
        payload: Value,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use perihelion_star::{GraphUpdate, Message};
    use serde_json::json;

    fn written(text: &str) -> Vec<Wrote> {
        let message = json!({ "id": "1", "role": "assistant", "content": text });
        let message: Message = serde_json::from_value(message).unwrap();
        let update = GraphUpdate::new().messages([message].into_iter().collect());
        vec![Wrote::of_star("qa", update)]
    }

    #[test]
    fn a_stream_ends_with_what_the_state_says_although_its_process_died_before_the_last_words() {
        let whole = "Pay 100 to Ann.";
        for sent in 1..whole.len() {
            let mut pieces = PartialMessages::default();
            pieces.take(1, (3, 0), "qa".into(), whole[..sent].into());
            // Another process reads the answer back and sends none of it again.
            pieces.begin_again();
            let rest = pieces.rest(1, 3, &written(whole));
            let [ThreadChange::Piece { piece, text, message, .. }] = rest.as_slice() else {
                panic!("{sent}: {rest:?}")
            };
            assert_eq!((piece.as_str(), text.as_str()), (&whole[sent..], whole));
            assert_eq!(*message, message_id(1, 3, "qa"));
        }
        let mut pieces = PartialMessages::default();
        assert!(pieces.rest(1, 3, &written(whole)).is_empty(), "no piece was sent");
        pieces.take(1, (3, 0), "qa".into(), whole.into());
        assert!(pieces.rest(1, 3, &written(whole)).is_empty(), "all of it was sent");
        assert!(pieces.rest(1, 3, &written("Another answer.")).is_empty());
    }
}
