//! Decides the kind of question, and asks the user before any SQL if it is ambiguous.

use serde_json::json;

use super::{answered, asked, surveyed, tables_in_short};
use crate::analyst::MAX_ROUNDS;
use crate::analyst::turn::{
    ClarificationAnswer, ClarifyingQuestion, Intent, IntentKind, Turn, TurnUpdate,
};
use crate::pipeline::{Clarification, Finding, Role, Stage, StageResult, Step};
use perihelion_analysis::linking::Linker;

/// Asks the user the model's questions, in at most five rounds; then proceeds, with the assumptions listed.
pub async fn clarify(stage: Stage<Turn>) -> StageResult<Turn> {
    let rounds = stage.state().rounds;
    if rounds >= MAX_ROUNDS {
        return Ok(Step::next(TurnUpdate::new()));
    }
    let survey = surveyed(&stage)?;
    let more = json!({ "tables": tables_in_short(survey), "rounds_left": MAX_ROUNDS - rounds });
    let reply: ClarificationAnswer =
        asked(&stage, Role::Agent, ("clarify", "clarification"), more).await?;
    let update = TurnUpdate::new().assumptions(reply.assumptions);
    if !reply.needed || reply.questions.is_empty() {
        return Ok(Step::next(update));
    }
    Ok(Step::goto("clarify", answered(&stage, put(&reply.questions), update).await?))
}

/// Joins all questions; possible answers are separate if there is only one.
fn put(questions: &[ClarifyingQuestion]) -> Clarification {
    if let [only] = questions {
        let question = Clarification::new(only.question.clone());
        return only.options.iter().fold(question, |question, option| question.option(option));
    }
    let line = |(number, question): (usize, &ClarifyingQuestion)| {
        let options = question.options.join(" / ");
        let options = if options.is_empty() { options } else { format!(" ({options})") };
        format!("{number}. {}{options}", question.question)
    };
    let lines: Vec<String> = (1..).zip(questions).map(line).collect();
    Clarification::new(lines.join("\n"))
}

/// Asks the classifier; a question out of scope ends here, without SQL.
pub async fn intent(stage: Stage<Turn>) -> StageResult<Turn> {
    let survey = surveyed(&stage)?;
    let evidence = Linker::new(&survey.catalogue).rank(stage.query()).evidence;
    let more = json!({ "tables": tables_in_short(survey), "evidence": format!("{evidence:.2}") });
    let intent: Intent = asked(&stage, Role::Classifier, ("intent", "intent"), more).await?;
    let update = TurnUpdate::new().intent(Some(intent.clone()));
    Ok(match intent.intent {
        IntentKind::DataQa | IntentKind::AnalyticsReport => Step::next(update),
        IntentKind::GeneralQa => Step::goto("interpret", update),
        IntentKind::OutOfScope => {
            let tables: Vec<String> =
                survey.catalogue.tables.iter().take(8).map(|table| table.name.shown()).collect();
            let text = format!(
                "This cannot be answered from the database: {} It has these tables: {}.",
                sentence(&intent.reason),
                tables.join(", ")
            );
            Step::done_with(update, Finding::text(text).confidence(intent.confidence))
        }
    })
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}
