//! Makes the model write the text, and checks that the named messages exist.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Letter, LetterUpdate, Mail, look::Action};
use crate::pipeline::{
    AgentError, Ask, Clarification, ErrorKind, Role, Stage, StageError, StageResult, Step,
};

/// How often a text with unknown references is written again, and the number of questions to the user.
const REPAIRS: u32 = 2;
const QUESTIONS: usize = 3;

/// What the model answers.
#[derive(Debug, Deserialize, JsonSchema)]
struct Draft {
    /// Number of the message that is answered or handed on; null for a new one.
    message: Option<usize>,
    /// Addresses; of an answer, none: it goes to the one who wrote.
    #[schemars(length(max = 32), inner(length(max = 200)))]
    to: Vec<String>,
    #[schemars(length(max = 32), inner(length(max = 200)))]
    cc: Vec<String>,
    #[schemars(length(max = 32), inner(length(max = 200)))]
    bcc: Vec<String>,
    #[schemars(length(max = 200))]
    subject: String,
    /// What the writer says; what it answers or hands on is added below.
    text: String,
    /// Keys of artifacts to attach.
    #[schemars(length(max = 8), inner(length(max = 100)))]
    attachments: Vec<String>,
    /// What the user must be asked first, such as an address that nobody gave; else null.
    #[schemars(length(max = 300))]
    question: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DraftCall {
    pub role: String,
    pub arguments: Value,
}

pub async fn write(stage: Stage<Letter>) -> StageResult<Letter> {
    let state = stage.state();
    match state.plan.action {
        Action::Read => return Ok(Step::goto("answer", LetterUpdate::new())),
        Action::Send => return choose(stage).await,
        Action::Draft | Action::Reply | Action::Forward => {}
    }
    let numbered = |(number, mail)| Numbered { number, mail };
    let messages: Vec<Numbered<'_>> = (1..).zip(&state.messages).map(numbered).collect();
    let prompt = stage.variables(json!({
        "action": state.plan.action,
        "messages": messages,
        "answers": state.answers,
        "problem": state.problem,
    }));
    let ask = Ask::new(Role::Agent, "write", "mail_draft").prompt("mail_write", prompt);
    let draft: Draft = stage.ask(ask).await?;
    let update = LetterUpdate::new().writes(state.writes + 1);
    let question = draft.question.as_deref().map(str::trim).filter(|text| !text.is_empty());
    if let Some(question) = question.filter(|_| state.answers.len() < QUESTIONS) {
        let answer = stage.clarify(Clarification::new(question)).await?;
        return Ok(Step::goto("write", update.answers(vec![format!("{question} {answer}")])));
    }
    match wanted(&stage, draft).await {
        Ok(wanted) => Ok(Step::next(update.wanted(Some(wanted)).problem(None))),
        Err(StageError::Failed(error)) if state.writes < REPAIRS => {
            Ok(Step::goto("write", update.problem(Some(error.message))))
        }
        Err(error) => Err(error),
    }
}

/// A message under the number by which the model names it.
#[derive(Serialize)]
struct Numbered<'a> {
    number: usize,
    #[serde(flatten)]
    mail: &'a Mail,
}

fn unfit(why: impl Into<String>) -> StageError {
    AgentError::new(ErrorKind::PathResolution, why).into()
}

/// Turns a text into the call that keeps it.
async fn wanted(stage: &Stage<Letter>, draft: Draft) -> Result<DraftCall, StageError> {
    let messages = &stage.state().messages;
    let named = || {
        let number = draft.message.and_then(|number| number.checked_sub(1));
        let mail = number.and_then(|number| messages.get(number));
        mail.map(|mail| mail.id.clone()).ok_or_else(|| {
            let all = messages.len();
            unfit(format!("`message` must be the number of one of the {all} messages"))
        })
    };
    let action = stage.state().plan.action;
    let role = match action {
        Action::Reply => "reply",
        Action::Forward => "forward",
        _ => "draft",
    };
    if !stage.has_tool(role) {
        return Err(unfit(format!("this server has no tool to {role}; write a new message")));
    }
    let arguments = match action {
        Action::Reply => json!({ "id": named()?, "text": draft.text }),
        Action::Forward => {
            if draft.to.is_empty() {
                return Err(unfit("`to` must name whom it is handed on to"));
            }
            json!({ "id": named()?, "to": draft.to, "text": draft.text })
        }
        _ => {
            if draft.to.is_empty() && draft.cc.is_empty() && draft.bcc.is_empty() {
                return Err(unfit("the message needs a recipient in `to`, or a `question`"));
            }
            let files = attached(stage, &draft.attachments).await?;
            json!({
                "to": draft.to, "cc": draft.cc, "bcc": draft.bcc, "subject": draft.subject,
                "text": draft.text, "attachments": files,
            })
        }
    };
    Ok(DraftCall { role: role.to_owned(), arguments })
}

/// Reads artifacts, so that they are attached whole and never go through the model.
async fn attached(stage: &Stage<Letter>, keys: &[String]) -> Result<Vec<Value>, StageError> {
    let mut files = Vec::new();
    for key in keys {
        let text = stage.artifact(key).await?;
        let name = key.rsplit('/').next().unwrap_or(key);
        files.push(json!({ "name": name, "text": &*text }));
    }
    Ok(files)
}

/// Takes the one draft there is, or has the user choose.
async fn choose(stage: Stage<Letter>) -> StageResult<Letter> {
    let drafts = &stage.state().messages;
    let chosen = match drafts.as_slice() {
        [one] => Some(one),
        drafts => {
            let line = |(number, mail): (usize, &Mail)| {
                format!("{number}: to {}, {}", mail.recipients(), mail.subject)
            };
            let question = Clarification::new("Which draft is to be sent?");
            let question = (1..).zip(drafts).map(line).fold(question, Clarification::option);
            let answer = stage.clarify(question).await?;
            let digits: String = answer.trim().chars().take_while(char::is_ascii_digit).collect();
            let number = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            number.and_then(|number| drafts.get(number))
        }
    };
    let Some(chosen) = chosen else {
        let message = "none of the drafts was chosen, so nothing was sent";
        return Err(AgentError::new(ErrorKind::PlanningDeclined, message).into());
    };
    Ok(Step::goto("send", LetterUpdate::new().draft(Some(chosen.clone()))))
}
