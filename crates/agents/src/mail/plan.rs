//! Has the model say what is wanted and which searches find what it takes, before any message is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Letter, LetterUpdate};
use crate::pipeline::{Ask, Finding, Role, Stage, StageResult, Step};

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    /// Find and read, and say what stands there.
    #[default]
    Read,
    /// Write a new message.
    Draft,
    /// Answer one.
    Reply,
    /// Hand one on.
    Forward,
    /// Send a draft that there is.
    Send,
}

/// What the model answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    pub action: Action,
    /// `inbox`, `sent`, `drafts` or a folder's name.
    pub folder: String,
    /// Searches in that folder, tried in this order until one finds something; narrow ones first.
    pub queries: Vec<String>,
    /// The task asks that what is written be sent, not only drafted.
    pub send: bool,
    pub reason: String,
}

pub async fn plan(stage: Stage<Letter>) -> StageResult<Letter> {
    if let Some(sent) = &stage.state().sent {
        // Whatever is to be said better of it, it left.
        return Ok(Step::done(Finding::text(sent.clone())));
    }
    let prompt = stage.variables(Value::Null);
    let ask = Ask::new(Role::Agent, "plan", "mail_plan").prompt("mail_plan", prompt);
    let plan: Plan = stage.ask(ask).await?;
    let update = LetterUpdate::new().plan(plan).messages(Vec::new()).draft(None).wanted(None);
    Ok(Step::next(update.problem(None).writes(0)))
}
