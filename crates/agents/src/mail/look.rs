//! Makes the model plan the searches before any message is read, searches, and reads the threads of the results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Letter, LetterUpdate, Mail};
use crate::pipeline::{
    AgentError, Ask, ErrorKind, Finding, Role, Stage, StageError, StageResult, Step, clip,
};

const SEARCHES: usize = 4;
/// Threads that are read, and messages of all of them together.
const THREADS: usize = 3;
const MESSAGES: usize = 12;
/// Characters of a message's text that are handed on.
const SHOWN: usize = 4_000;

const UNREAD: &str = "some of the messages that were found could not be read";

pub async fn look(stage: Stage<Letter>) -> StageResult<Letter> {
    let plan = &stage.state().plan;
    let queries: Vec<&String> = plan.queries.iter().take(SEARCHES).collect();
    if queries.is_empty() && plan.action == Action::Draft {
        return Ok(Step::next(LetterUpdate::new()));
    }
    let everything = String::new();
    let queries = if queries.is_empty() { vec![&everything] } else { queries };
    let folder = match plan.action {
        Action::Send => "drafts",
        _ => plan.folder.as_str(),
    };
    let mut found: Vec<Mail> = Vec::new();
    let mut problem = None;
    for query in &queries {
        stage.progress(format!("searching {folder} for: {query}"));
        let wanted = [json!({ "query": query, "folder": folder })];
        // Planned before anything was read, so it contains no text of strangers.
        let reply = stage.follow_all("search", wanted).await?.pop().unwrap_or_default();
        match Mail::all_of(&reply) {
            Ok(messages) => found = messages,
            Err(error) => problem = Some(error),
        }
        if !found.is_empty() {
            break;
        }
    }
    if found.is_empty() {
        return nothing(plan.action, folder, problem);
    }
    let (messages, problem) = match plan.action {
        Action::Send => drafts(&stage, &found).await?,
        _ => threads(&stage, &found).await?,
    };
    let problem = match problem {
        Some(problem) if messages.is_empty() => return Err(problem.into()),
        Some(problem) => {
            stage.progress(format!("{UNREAD}: {problem}"));
            // The problem itself can quote a stranger's message.
            Some(UNREAD.to_owned())
        }
        None => None,
    };
    stage.progress(format!("read {} message(s)", messages.len()));
    Ok(Step::next(LetterUpdate::new().messages(messages).problem(problem)))
}

fn nothing(action: Action, folder: &str, problem: Option<AgentError>) -> StageResult<Letter> {
    let words = format!("No message in {folder} fits the searches.");
    match (action, problem) {
        (_, Some(problem)) => Err(problem.into()),
        (Action::Read, None) => Ok(Step::done(Finding::text(words).confidence(0.3))),
        (Action::Draft, None) => Ok(Step::next(LetterUpdate::new())),
        (_, None) => Err(AgentError::new(ErrorKind::PathResolution, words).into()),
    }
}

/// Messages that were read, and the last problem of those that were not.
type Read = (Vec<Mail>, Option<AgentError>);

/// Reads the threads of the first messages, each once.
async fn threads(stage: &Stage<Letter>, found: &[Mail]) -> Result<Read, StageError> {
    let mut messages: Vec<Mail> = Vec::new();
    let mut problem = None;
    let mut read = 0;
    for mail in found {
        if read == THREADS || messages.len() >= MESSAGES || stage.budget().tool_calls == 0 {
            break;
        }
        if messages.iter().any(|known| known.id == mail.id) {
            continue;
        }
        let wanted = [json!({ "id": mail.id })];
        let reply = stage.follow_all("read", wanted).await?.pop().unwrap_or_default();
        read += 1;
        let mut thread = Mail::all_of(&reply).unwrap_or_else(|error| {
            problem = Some(error);
            Vec::new()
        });
        thread.retain(|one| !messages.iter().any(|known| known.id == one.id));
        for mut one in newest(thread, &mail.id, MESSAGES - messages.len()) {
            one.text = clip(&one.text, SHOWN);
            messages.push(one);
        }
    }
    Ok((messages, problem))
}

/// Returns the newest messages of a thread and the one that was found, as the server does for a whole thread.
fn newest(mut thread: Vec<Mail>, found: &str, most: usize) -> Vec<Mail> {
    let mut excess = thread.len().saturating_sub(most);
    thread.retain(|one| {
        let is_left_out = excess > 0 && one.id != found;
        excess -= usize::from(is_left_out);
        !is_left_out
    });
    thread
}

/// Reads drafts completely, because sent text is shown completely.
async fn drafts(stage: &Stage<Letter>, found: &[Mail]) -> Result<Read, StageError> {
    let found: Vec<&Mail> = found.iter().take(MESSAGES).collect();
    let wanted = found.iter().map(|mail| json!({ "id": mail.id }));
    let replies = stage.follow_all("read", wanted).await?;
    let mut messages = Vec::new();
    let mut problem = None;
    for (mail, reply) in found.iter().zip(replies) {
        match Mail::all_of(&reply) {
            Ok(thread) => messages.extend(thread.into_iter().find(|one| one.id == mail.id)),
            Err(error) => problem = Some(error),
        }
    }
    Ok((messages, problem))
}

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
    #[schemars(length(max = 100))]
    pub folder: String,
    /// Searches in that folder, tried in this order until one finds something; narrow ones first.
    #[schemars(length(max = 6), inner(length(max = 200)))]
    pub queries: Vec<String>,
    /// The task asks that what is written be sent, not only drafted.
    pub send: bool,
    #[schemars(length(max = 200))]
    pub reason: String,
}

pub async fn plan(stage: Stage<Letter>) -> StageResult<Letter> {
    if let Some(sent) = &stage.state().sent {
        // The message was sent, so another round cannot improve it.
        return Ok(Step::done(Finding::text(sent.clone())));
    }
    let prompt = stage.variables(Value::Null);
    let ask = Ask::new(Role::Agent, "plan", "mail_plan").prompt("mail_plan", prompt);
    let plan: Plan = stage.ask(ask).await?;
    let update = LetterUpdate::new().plan(plan).messages(Vec::new()).draft(None).wanted(None);
    Ok(Step::next(update.problem(None).writes(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_thread_the_newest_messages_and_the_found_one_are_read() {
        let thread = || (1..=20).map(|id| Mail { id: id.to_string(), ..Mail::default() }).collect();
        let read = |found: &str| -> Vec<String> {
            newest(thread(), found, MESSAGES).into_iter().map(|mail| mail.id).collect()
        };
        let last = |from: u32| (from..=20).map(|id| id.to_string());
        assert_eq!(read("20"), last(9).collect::<Vec<_>>());
        assert_eq!(read("3"), std::iter::once("3".to_owned()).chain(last(10)).collect::<Vec<_>>());
    }
}
