//! IDs of checkpoints: each is a UUID that names a step of a thread, and they sort as the steps do.
//!
//! A copy of a thread keeps the IDs of the steps that it shares with its original.

use uuid::Uuid;

use super::{Result, Service};
use perihelion_engine::ids::ThreadId;

/// Bits of a step's number in an ID.
const BITS: u32 = 48;

#[derive(Clone, Debug)]
pub struct CheckpointIds {
    thread: ThreadId,
    graph: String,
    /// The threads that it was copied from, each with the last step that it shares; oldest first.
    origins: Vec<(Uuid, u64)>,
}

impl CheckpointIds {
    /// Returns the thread that made a step: this one, or the one from which it was copied.
    pub(super) fn origin(&self, step: u64) -> ThreadId {
        let shared = self.origins.iter().find(|(_, last)| step <= *last);
        shared.map_or(self.thread, |(origin, _)| ThreadId(*origin))
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.thread
    }

    pub(super) fn graph(&self) -> &str {
        &self.graph
    }

    pub fn id(&self, step: u64) -> String {
        id_in(self.origin(step), step)
    }

    /// Returns the step of an ID; `None` when it belongs to another thread.
    pub fn step(&self, id: &str) -> Option<u64> {
        let found = Uuid::parse_str(id).ok()?;
        let step = u64::try_from(found.as_u128() >> (128 - BITS)).ok()?;
        // Earlier versions gave the steps of a copy IDs of its own.
        let ids = [self.id(step), id_in(self.thread, step)];
        ids.contains(&found.to_string()).then_some(step)
    }
}

fn id_in(thread: ThreadId, step: u64) -> String {
    let tail = Uuid::new_v5(&thread.0, b"checkpoint").as_u128() & ((1 << 76) - 1);
    let bits = (u128::from(step) << (128 - BITS)) | tail;
    let version = (bits & !(0xf << 76)) | (0x8 << 76);
    let variant = (version & !(0x3 << 62)) | (0x2 << 62);
    Uuid::from_u128(variant).to_string()
}

impl Service {
    pub async fn checkpoint_ids(&self, thread: ThreadId) -> Result<CheckpointIds> {
        let origins = self.kept().thread_meta(thread.0).await?.origins;
        let graph = self.runtime().store().info(thread).await?.graph;
        Ok(CheckpointIds { thread, graph, origins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(origins: Vec<(Uuid, u64)>) -> CheckpointIds {
        CheckpointIds { thread: ThreadId::new(), graph: String::new(), origins }
    }

    #[test]
    fn an_id_names_its_step_and_thread_and_sorts_as_steps_do() {
        let one = ids(Vec::new());
        let all: Vec<String> = [1, 2, 255, 65_536].map(|step| one.id(step)).into();
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!(one.step(&all[2]), Some(255));
        assert_eq!(ids(Vec::new()).step(&all[2]), None, "another thread's");
        assert_eq!(one.step("x"), None);
    }

    #[test]
    fn a_copy_keeps_the_ids_of_what_it_shares() {
        let first = ids(Vec::new());
        let copy = ids(vec![(first.thread.0, 3)]);
        let second = ids(vec![(first.thread.0, 3), (copy.thread.0, 5)]);
        assert_eq!((copy.id(3), second.id(3)), (first.id(3), first.id(3)));
        assert_eq!(second.id(4), copy.id(4));
        assert_ne!(copy.id(4), first.id(4));
        assert_eq!(second.step(&first.id(2)), Some(2));
        assert_eq!(second.step(&first.id(4)), None);
        assert_eq!(copy.step(&id_in(copy.thread, 2)), Some(2), "as an earlier version named it");
    }
}
