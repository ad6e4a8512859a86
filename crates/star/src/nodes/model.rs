//! A node that asks a model.

use std::sync::Arc;

use super::calls;
use perihelion_engine::graph::{Context, Node, NodeOutput, State, node_with};
use perihelion_llm::{ChatMessage, ChatModel, ChatResponse};

/// Makes a node that asks a model what `prompt` makes of the state, and writes what `write` makes of the answer.
pub fn model_call<S: State>(
    model: Arc<dyn ChatModel>,
    prompt: impl Fn(&S) -> Vec<ChatMessage> + Send + Sync + 'static,
    write: impl Fn(ChatResponse) -> S::Update + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    node_with(Arc::new((model, prompt, write)), async |parts, ctx: Context<S>| {
        let (model, prompt, write) = &*parts;
        let answer = calls::ask(ctx.task(), model, prompt(ctx.state()), Vec::new()).await?;
        Ok(NodeOutput::update(write(answer)))
    })
}
