//! Where a writer of a thread continues from: its head and hash, its token, the thread at the top.

use perihelion_engine::ids::ThreadId;

use super::model::Model;

impl Model {
    /// Returns the head and the newest hash a writer would continue from.
    pub fn tip(&self, thread: ThreadId) -> (u64, [u8; 32]) {
        let found = self.threads.get(&thread);
        let hash = found.and_then(|one| one.steps.last()).map_or([0; 32], |step| step.hash);
        (found.map_or(0, |one| one.info.head), hash)
    }

    pub fn fence(&self, thread: ThreadId) -> u64 {
        self.threads.get(&thread).map_or(0, |one| one.info.fence)
    }

    /// Returns the thread whose texts a thread's steps bring, and the step of that thread which does.
    pub fn top(&self, thread: ThreadId, step: u64) -> (ThreadId, u64) {
        match self.threads.get(&thread).and_then(|one| one.info.root) {
            Some(root) => (root, self.threads.get(&root).map_or(0, |one| one.info.head) + 1),
            None => (thread, step),
        }
    }
}
