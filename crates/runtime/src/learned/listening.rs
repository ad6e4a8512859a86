//! Long-term memory: what a user said becomes facts and preferences, beside the run and never before it.

use perihelion_memory::Operations;
use perihelion_recall::Scope;
use serde_json::json;

use super::{Error, Shared, embed};
use perihelion_engine::clock;
use perihelion_llm::{self as llm, ChatRequest, Role};
use perihelion_star::Statement;

/// Name of the schema of the extractor's answer.
const SCHEMA: &str = "user_memory";

/// Characters of a message that are looked at.
const CHARS: usize = 8_000;

/// Asks the extractor what of a user's words is worth remembering, and remembers it; a failure is a line in the log.
pub(super) async fn listen(shared: &Shared, scope: &Scope, heard: Statement) {
    let thread = heard.thread.clone();
    if let Err(error) = remember(shared, scope, heard).await {
        tracing::warn!(%error, thread, "cannot store memories of the user");
    }
}

async fn remember(shared: &Shared, scope: &Scope, heard: Statement) -> Result<(), Error> {
    // Keys alone: values that were recalled must not be extracted again.
    let known = shared.memory.list(scope).await?;
    let keys: Vec<&str> = known.iter().map(|entry| entry.key.as_str()).collect();
    let text: String = heard.text.chars().take(CHARS).collect();
    let prompt = json!({ "message": text, "keys": keys });
    let request = ChatRequest {
        role: Role::Extractor,
        thread: heard.thread.clone(),
        agent: None,
        stage: Some("extract".to_owned()),
        messages: shared.prompts.messages("extractor", prompt)?,
        tools: Vec::new(),
        format: None,
    };
    let answer = llm::ask::<Operations>(shared.model.as_ref(), request, SCHEMA).await?;
    let source = format!("thread {} turn {}", heard.thread, heard.turn);
    let done = shared.memory.apply(scope, &answer.value, &source, clock::now()).await?;
    if done > 0 {
        embed(shared.memory.index(), shared.embeddings.as_ref(), scope).await?;
    }
    Ok(())
}
