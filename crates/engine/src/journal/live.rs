//! Where what a task publishes while it runs is heard.

use async_trait::async_trait;
use serde_json::Value;

use crate::graph::{StreamMode, Wants};

/// Hears the live events of one task.
#[async_trait]
pub trait Live: Send + Sync {
    /// Publishes a piece; never waits, and drops it where the listener is too far behind.
    fn publish(&self, mode: StreamMode, payload: Value);

    /// Returns which events are listened to.
    fn wants(&self) -> Wants;

    /// Passes an event of a subgraph on; waits while the listener is behind.
    async fn nested(&self, namespace: String, modes: Vec<StreamMode>, event: Value);
}
