//! Dispatch without a queue: the status of the threads is the queue.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::look::{Look, Wake};
use super::{Dispatcher, Error, Scope};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::clock;

/// How often workers look for threads to continue with; a look reads an index of active threads alone.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Dispatch for a store in a file or in memory, whose processes share one machine.
pub struct Embedded {
    look: Look,
}

impl Embedded {
    /// Makes the dispatcher of a store.
    pub fn new(store: Arc<dyn Store>, scope: Scope) -> Self {
        Self { look: Look::new(store, scope, LOOK_EVERY, Duration::ZERO) }
    }
}

#[async_trait]
impl Dispatcher for Embedded {
    async fn next(&self) -> Result<Option<Wake>, Error> {
        Ok(self.look.next().await?)
    }

    async fn called(&self) {
        clock::sleep(self.look.until_due()).await;
    }

    fn set_aside(&self, wake: &Wake, pause: Duration) {
        self.look.set_aside(wake, pause);
    }

    async fn close(&self) {}
}
