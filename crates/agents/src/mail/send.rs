//! Stores the text as a draft, sends it if the task requests it, and describes the findings, the draft or the sent
//! message.
//!
//! The approval of a send shows all of it, and the user decides about an unknown outcome.

use serde_json::{Value, json};

use super::{Letter, LetterUpdate, Mail, look::Action};
use crate::lenient;
use crate::pipeline::{
    AgentError, Ask, Clarification, ErrorKind, Finding, Role, Source, Stage, StageResult, Step,
    Table, ToolReply,
};

/// The beginning of the server's message if it cannot know whether a draft was sent.
const UNKNOWN: &str = "OutcomeUnknown";
const AGAIN: &str = "send it again";
const LEAVE: &str = "leave it";

pub async fn send(stage: Stage<Letter>) -> StageResult<Letter> {
    let state = stage.state();
    let Some(mut draft) = state.draft.clone() else {
        return Err(AgentError::new(ErrorKind::Tool, "there is no draft to send").into());
    };
    let is_wanted = state.plan.send || state.plan.action == Action::Send;
    if !is_wanted || !stage.has_tool("send") {
        return Ok(Step::next(LetterUpdate::new()));
    }
    let mut arguments = json!({ "id": draft.id, "message": draft.shown() });
    let mut reply = stage.call("send", arguments.clone()).await?;
    if reply.is_error && reply.text.starts_with(UNKNOWN) {
        let words = format!(
            "Whether “{}” reached {} is not known: sending began and did not end. Has it arrived?",
            draft.subject,
            draft.recipients()
        );
        let question = Clarification::new(words).option(AGAIN).option(LEAVE);
        let answer = stage.clarify(question).await?;
        if answer.trim().to_lowercase() != AGAIN {
            let words = format!(
                "Whether “{}” was sent is not known; as you decided, it was not sent again: {answer}",
                draft.subject
            );
            return Ok(Step::next(LetterUpdate::new().sent(Some(words))));
        }
        arguments["resend"] = json!(true);
        reply = stage.call("send", arguments).await?;
    }
    // A person may have changed what is sent.
    let mut update = LetterUpdate::new();
    let edited = reply.edited.as_ref().and_then(|edited| edited.get("message"));
    if let Some(edited) = edited.and_then(lenient::read::<Mail>) {
        draft = Mail { id: draft.id, ..edited };
        update = update.draft(Some(draft.clone()));
    }
    let words = confirmation(&reply, &draft.subject, &draft.recipients())?;
    Ok(Step::next(update.sent(words)))
}

/// Describes the result; `None` if a person wants to keep the draft.
fn confirmation(
    reply: &ToolReply,
    subject: &str,
    recipients: &str,
) -> Result<Option<String>, AgentError> {
    if reply.is_error && reply.text.starts_with("a person denied") {
        return Ok(None);
    }
    if reply.is_error {
        return Err(AgentError::of_message(reply.text.as_str()));
    }
    let word = reply.instruction.as_deref().map(str::trim).filter(|word| !word.is_empty());
    let word =
        word.map(|word| format!(" The person who approved it says: {word}")).unwrap_or_default();
    Ok(Some(format!("Sent “{subject}” to {recipients}.{word}")))
}

pub async fn keep(stage: Stage<Letter>) -> StageResult<Letter> {
    let Some(wanted) = stage.state().wanted.clone() else {
        return Err(AgentError::new(ErrorKind::Tool, "there is no text to keep").into());
    };
    let reply = stage.call(&wanted.role, wanted.arguments).await?;
    if reply.is_error && reply.text.starts_with("a person denied") {
        return Ok(Step::done(Finding::text(format!("No draft was kept: {}.", reply.text))));
    }
    let draft = reply.structured.as_ref().and_then(lenient::read::<Mail>);
    let Some(draft) = draft.filter(|draft| !reply.is_error && !draft.id.is_empty()) else {
        return Err(AgentError::of_message(reply.text).into());
    };
    let update = LetterUpdate::new().draft(Some(draft));
    if let Some(word) = reply.instruction.filter(|word| !word.trim().is_empty()) {
        let problem = format!("the person who approved the draft says: {word}");
        return Ok(Step::goto("write", update.problem(Some(problem))));
    }
    Ok(Step::next(update))
}

/// Characters of a message that a citation quotes.
const QUOTE: usize = 300;

pub async fn answer(stage: Stage<Letter>) -> StageResult<Letter> {
    let state = stage.state();
    if state.plan.action == Action::Read {
        return read(stage).await;
    }
    let Some(draft) = &state.draft else {
        return Ok(Step::done(Finding::text("Nothing was written.")));
    };
    let id = &draft.id;
    let to = draft.recipients();
    let text = &draft.text;
    let words = match &state.sent {
        Some(sent) => format!("{sent} Its id is {id}.\n\n{text}"),
        None => {
            format!("Kept as a draft, not sent: “{}” to {to}, id {id}.\n\n{text}", draft.subject)
        }
    };
    Ok(Step::done(Finding::text(words).source(source(&stage, draft))))
}

/// Answers from the messages alone, with citations.
async fn read(stage: Stage<Letter>) -> StageResult<Letter> {
    let messages = stage.state().messages.clone();
    let passage = |(number, mail): (usize, &Mail)| {
        let section = format!(
            "from {} to {}, {}",
            mail.from,
            mail.recipients(),
            mail.date.as_deref().unwrap_or("?")
        );
        json!({ "number": number, "title": mail.subject, "page": null, "section": section, "text": mail.text })
    };
    let passages: Vec<Value> = (1..).zip(&messages).map(passage).collect();
    let remarks = stage.state().problem.as_slice();
    let variables = json!({ "question": stage.task(), "passages": passages, "remarks": remarks });
    let variables = stage.variables(variables);
    let ask = Ask::new(Role::Agent, "answer", "").prompt("documents_answer", variables);
    let checked = stage.check_citations(&stage.ask_text(ask).await?, messages.len());
    let checked = checked.renumbered();
    let mut finding = Finding::text(checked.text.trim())
        .citations_removed(checked.removed)
        .table(table(&messages));
    for mail in checked.cited.iter().filter_map(|number| messages.get(number - 1)) {
        finding = finding.source(source(&stage, mail));
    }
    Ok(Step::done(finding))
}

fn table(messages: &[Mail]) -> Table {
    let columns = ["date", "from", "subject", "folder", "id"].map(str::to_owned).to_vec();
    let row = |mail: &Mail| {
        let Mail { date, from, subject, folder, id, .. } = mail;
        [json!(date), json!(from), json!(subject), json!(folder), json!(id)].to_vec()
    };
    Table::new(columns, messages.iter().map(row).collect())
}

fn source(stage: &Stage<Letter>, mail: &Mail) -> Source {
    let quote: String = mail.text.chars().take(QUOTE).collect();
    Source {
        source: format!("{}.read_thread", stage.server().name),
        reference: Some(mail.id.clone()),
        quote: Some(quote),
        ..Source::default()
    }
}
