//! Says what was found, drafted or sent.

use serde_json::{Value, json};

use super::plan::Action;
use super::{Letter, Mail};
use crate::pipeline::{Ask, Finding, Role, Source, Stage, StageResult, Step, Table};

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
    let variables = stage.variables(json!({ "question": stage.task(), "passages": passages }));
    let ask = Ask::new(Role::Agent, "answer", "").prompt("documents_answer", variables);
    let checked = stage.check_citations(&stage.ask_text(ask).await?, messages.len());
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
        vec![
            json!(mail.date),
            json!(mail.from),
            json!(mail.subject),
            json!(mail.folder),
            json!(mail.id),
        ]
    };
    let rows: Vec<Vec<Value>> = messages.iter().map(row).collect();
    Table::new(columns, rows)
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
