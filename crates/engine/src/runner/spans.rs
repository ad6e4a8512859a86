//! The seam through which runs get live spans, for logs.

use async_trait::async_trait;
use tracing::Span;

use crate::graph::NodeLocation;
use crate::ids::{RunId, ThreadId};

/// Makes the live `tracing` spans in which runs and tasks are worked on.
#[async_trait]
pub trait Spans: Send + Sync {
    /// Returns the span of a run of a thread at the top that has begun; [`Span::none`] where nobody wants one.
    async fn run(&self, thread: ThreadId, run: RunId) -> Span;

    /// Returns the span of a task, made while its run's is entered.
    fn task(&self, place: &NodeLocation) -> Span;
}
