//! A node that asks a model.

use std::sync::Arc;

use async_trait::async_trait;

use super::calls;
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput, State};
use perihelion_llm::{ChatMessage, ChatModel, ChatResponse};

struct ModelCall<P, W> {
    model: Arc<dyn ChatModel>,
    prompt: P,
    write: W,
}

/// Makes a node that asks a model what `prompt` makes of the state, and writes what `write` makes of the answer.
pub fn model_call<S: State>(
    model: Arc<dyn ChatModel>,
    prompt: impl Fn(&S) -> Vec<ChatMessage> + Send + Sync + 'static,
    write: impl Fn(ChatResponse) -> S::Update + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    Arc::new(ModelCall { model, prompt, write })
}

#[async_trait]
impl<S, P, W> Node<S> for ModelCall<P, W>
where
    S: State,
    P: Fn(&S) -> Vec<ChatMessage> + Send + Sync,
    W: Fn(ChatResponse) -> S::Update + Send + Sync,
{
    async fn run(&self, ctx: Context<S>) -> Result<NodeOutput<S>, NodeError> {
        let messages = (self.prompt)(ctx.state());
        let answer = calls::ask(ctx.task(), &self.model, messages, Vec::new()).await?;
        Ok(NodeOutput::update((self.write)(answer)))
    }
}
