//! Wakes the tasks that wait for one key of many.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

type Waiting<K, N> = HashMap<K, watch::Sender<N>>;

/// The waiting tasks by key; cheap to clone.
///
/// A call costs as much as the number of tasks that wait for its key; tasks that wait for other keys stay asleep. It
/// carries a value; a task that was called several times gets the newest one.
#[derive(Clone, Debug, Default)]
pub struct Calls<K: Eq + Hash + Copy, N = ()>(Arc<Mutex<Waiting<K, N>>>);

/// A task that waits for the calls of a key.
#[derive(Debug)]
pub struct CallReceiver<K: Eq + Hash + Copy, N = ()> {
    key: K,
    calls: Calls<K, N>,
    heard: watch::Receiver<N>,
}

impl<K: Eq + Hash + Copy, N: Clone + Default> Calls<K, N> {
    /// Wakes the tasks that wait for a key; a key without tasks is no error.
    pub fn call(&self, key: K, notice: N) {
        if let Some(sender) = self.0.lock().get(&key) {
            sender.send_replace(notice);
        }
    }

    /// Waits for the calls of a key from now on.
    pub fn wait_for(&self, key: K) -> CallReceiver<K, N> {
        let mut waiting = self.0.lock();
        let sender = waiting.entry(key).or_insert_with(|| watch::channel(N::default()).0);
        CallReceiver { key, calls: self.clone(), heard: sender.subscribe() }
    }
}

impl<K: Eq + Hash + Copy, N> Calls<K, N> {
    /// Returns whether a task waits for a key.
    pub fn is_waited_for(&self, key: K) -> bool {
        self.0.lock().contains_key(&key)
    }

    /// Returns how many keys are waited for.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Returns whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Eq + Hash + Copy, N: Clone> CallReceiver<K, N> {
    /// Marks the calls so far as received.
    pub fn forget(&mut self) {
        self.heard.mark_unchanged();
    }

    /// Returns the value of the newest call; immediately if there was a call since the last one received.
    pub async fn called(&mut self) -> N {
        // The sender exists while a task waits.
        if self.heard.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.heard.borrow_and_update().clone()
    }
}

impl<K: Eq + Hash + Copy, N> Drop for CallReceiver<K, N> {
    fn drop(&mut self) {
        let mut waiting = self.calls.0.lock();
        // This one is still counted.
        if waiting.get(&self.key).is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn only_waiters_for_a_key_are_called_and_removed_waiters_leave_no_entry() {
        let calls = Calls::<_, u8>::default();
        calls.call(1, 7);
        let mut one = calls.wait_for(1);
        let mut same = calls.wait_for(1);
        let mut other = calls.wait_for(2);
        assert_eq!(one.called().now_or_never(), None, "it was called before anyone waited");
        calls.call(1, 7);
        calls.call(1, 8);
        assert_eq!(one.called().now_or_never(), Some(8), "the newest");
        assert_eq!(one.called().now_or_never(), None, "a call is heard once");
        same.forget();
        assert_eq!(same.called().now_or_never(), None);
        assert_eq!(other.called().now_or_never(), None);
        drop(one);
        calls.call(1, 9);
        assert_eq!(same.called().now_or_never(), Some(9));
        assert_eq!(calls.len(), 2);
        drop((same, other));
        assert!(calls.is_empty());
    }
}
