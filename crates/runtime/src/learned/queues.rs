//! Queues of lessons and of users' statements, which are stored in parallel with the runs.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use perihelion_recall::Scope;

type Keeping = Shared<BoxFuture<'static, ()>>;

/// The newest work of each agent or user that is not done yet, which comes after all earlier work for them.
#[derive(Clone, Default)]
pub(super) struct Queues {
    under_way: Arc<Mutex<HashMap<Scope, Keeping>>>,
}

impl Queues {
    /// Queues work behind the earlier work of the same scope; the future does it, and needs a separate task.
    pub(super) fn queue(
        &self,
        scope: Scope,
        keep: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mut under_way = self.under_way.lock();
        let before = under_way.get(&scope).cloned();
        let in_turn = async move {
            if let Some(before) = before {
                before.await;
            }
            keep.await;
        };
        let keeping = in_turn.boxed().shared();
        under_way.insert(scope.clone(), keeping.clone());
        drop(under_way);
        let queues = self.clone();
        async move {
            keeping.clone().await;
            let mut under_way = queues.under_way.lock();
            if under_way.get(&scope).is_some_and(|newest| newest.ptr_eq(&keeping)) {
                under_way.remove(&scope);
            }
        }
    }

    /// Waits until the work of a scope in this process is done.
    pub(super) async fn kept(&self, scope: &Scope) {
        let newest = self.under_way.lock().get(scope).cloned();
        if let Some(newest) = newest {
            newest.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn the_next_task_of_an_agent_waits_only_for_the_lessons_of_that_agent() {
        let lessons = Queues::default();
        let scope = |agent| Scope::new("default", agent).unwrap();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let lesson = |number: u32, wait: Option<oneshot::Receiver<()>>| {
            let kept = Arc::clone(&kept);
            async move {
                if let Some(wait) = wait {
                    wait.await.unwrap();
                }
                kept.lock().push(number);
            }
        };
        let (go, wait) = oneshot::channel();
        let first = lessons.queue(scope("atlas"), lesson(1, Some(wait)));
        let second = lessons.queue(scope("atlas"), lesson(2, None));
        let tasks = [tokio::spawn(second), tokio::spawn(first)];

        lessons.kept(&scope("ledger")).await;
        let atlas = scope("atlas");
        let mut waiting = std::pin::pin!(lessons.kept(&atlas));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        go.send(()).unwrap();
        waiting.await;
        assert_eq!(*kept.lock(), [1, 2], "in the order in which they were learned");
        for task in tasks {
            task.await.unwrap();
        }
        assert!(lessons.under_way.lock().is_empty(), "nothing is left of them");
    }
}
