//! A node that waits for a person's yes or no.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use perihelion_engine::graph::{Context, Node, NodeOutput, State, node_with};

/// What a person decided; on the wire `{ "approved": true, "reason": "…" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The name under which the question is asked.
const KIND: &str = "approval";

/// Makes a node that asks a person what `question` makes of the state, and continues with what `write` makes of the verdict:
/// an update, and where it says so the node that is next.
pub fn approval<S: State>(
    question: impl Fn(&S) -> Value + Send + Sync + 'static,
    write: impl Fn(Verdict) -> NodeOutput<S> + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    node_with(Arc::new((question, write)), async |parts, ctx: Context<S>| {
        let (question, write) = &*parts;
        let question = question(ctx.state());
        Ok(write(ctx.ask(KIND, &question).await?))
    })
}
