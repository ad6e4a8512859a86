//! The messages of the step under way, of which tasks tell piece by piece.

use std::collections::BTreeMap;

use super::Happening;
use perihelion_star::message_id;

/// What each task of the step under way has said, by step and task.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(BTreeMap<(u64, u32), MessageSoFar>);

/// What a task has said of a message.
#[derive(Clone, Debug, Default)]
struct MessageSoFar {
    text: String,
    /// How much of it the attempt under way has said again.
    again: Option<String>,
    /// How often another text than before was begun.
    versions: u32,
}

impl Pieces {
    /// Notes that the step under way begins again.
    pub(super) fn begin_again(&mut self) {
        self.0.values_mut().for_each(|message| message.again = Some(String::new()));
    }

    /// Notes that a task begins, perhaps again.
    pub(super) fn begin_task(&mut self, step: u64, task: u32) {
        if let Some(message) = self.0.get_mut(&(step, task)) {
            message.again.get_or_insert_default();
        }
    }

    /// Forgets what was said up to the end of a step.
    pub(super) fn end_step(&mut self, step: u64) {
        self.0.retain(|(of, _), _| *of > step);
    }

    /// Takes a piece of a message of a step's task; what an attempt says again is not sent again.
    pub(super) fn take(
        &mut self,
        turn: u32,
        (step, task): (u64, u32),
        node: String,
        mut piece: String,
    ) -> Option<Happening> {
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
        let message = match so_far.versions {
            0 => message_id(turn, step, &node),
            version => message_id(turn, step, &format!("{node}.{version}")),
        };
        let text = so_far.text.clone();
        Some(Happening::Piece { step, task, node, message, piece, text, is_first })
    }
}
