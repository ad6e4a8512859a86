//! Long-term memory: the user's words become facts and preferences, in parallel with the run and never before it.

use chrono::{DateTime, Utc};
use perihelion_memory::Operations;
use perihelion_recall::Scope;
use serde_json::json;

use super::{Error, Shared, embed};
use perihelion_llm::{self as llm, ChatRequest, Role};
use perihelion_star::Statement;

/// Name of the schema of the extractor's answer.
const SCHEMA: &str = "user_memory";

/// Characters of a message that are looked at.
const CHARS: usize = 8_000;

/// Asks the extractor for the memorable part of a user's words, and stores it; a failure is logged.
pub(super) async fn listen(shared: &Shared, scope: &Scope, heard: Statement, at: DateTime<Utc>) {
    let thread = heard.thread.clone();
    if let Err(error) = remember(shared, scope, heard, at).await {
        tracing::warn!(%error, thread, "cannot store memories of the user");
    }
}

async fn remember(
    shared: &Shared,
    scope: &Scope,
    heard: Statement,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    // Keys alone: values that were recalled must not be extracted again.
    let known = shared.memory.list(scope).await?;
    let keys: Vec<&str> = known.iter().map(|entry| entry.key.as_str()).collect();
    let text: String = heard.text.chars().take(CHARS).collect();
    let prompt = json!({ "message": text, "keys": keys });
    let messages = shared.prompts.messages("extractor", prompt)?;
    let request =
        ChatRequest::new(Role::Extractor, heard.thread.clone(), messages).stage("extract");
    let answer = llm::ask::<Operations>(shared.model.as_ref(), request, SCHEMA).await?;
    let source = format!("thread {} turn {}", heard.thread, heard.turn);
    let done = shared.memory.apply(scope, &answer.value, &source, at).await?;
    if done > 0 {
        embed(shared.memory.index(), shared.embeddings.as_ref(), scope).await?;
    }
    Ok(())
}
