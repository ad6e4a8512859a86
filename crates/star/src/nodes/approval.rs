//! A node that waits for a person's yes or no.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput, State};

/// What a person decided; on the wire `{ "approved": true, "reason": "…" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The name under which the question is asked.
const KIND: &str = "approval";

struct Approval<Q, W> {
    question: Q,
    write: W,
}

/// Makes a node that asks a person what `question` makes of the state, and continues with what `write` makes of the verdict:
/// an update, and where it says so the node that is next.
pub fn approval<S: State>(
    question: impl Fn(&S) -> Value + Send + Sync + 'static,
    write: impl Fn(Verdict) -> NodeOutput<S> + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    Arc::new(Approval { question, write })
}

#[async_trait]
impl<S, Q, W> Node<S> for Approval<Q, W>
where
    S: State,
    Q: Fn(&S) -> Value + Send + Sync,
    W: Fn(Verdict) -> NodeOutput<S> + Send + Sync,
{
    async fn run(&self, ctx: Context<S>) -> Result<NodeOutput<S>, NodeError> {
        let question = (self.question)(ctx.state());
        let verdict: Verdict = ctx.ask(KIND, &question).await?;
        Ok((self.write)(verdict))
    }
}
