//! The seam through which a tool call learns where it stands in its trace.

use async_trait::async_trait;

use perihelion_engine::graph::NodeLocation;

/// Names the span of a tool call before there is one, so that the server's own spans can hang under it.
#[async_trait]
pub trait TraceContext: Send + Sync {
    /// Returns the W3C `traceparent` of the call with this idempotency key; none when it cannot be told.
    async fn traceparent(&self, place: &NodeLocation, key: &str) -> Option<String>;
}
