//! Decides what kind of question it is.

use perihelion_analysis::linking::Linker;
use serde_json::json;

use super::super::answers::{Intent, IntentKind};
use super::super::turn::{Turn, TurnUpdate};
use super::{surveyed, tables_in_short, with_question};
use crate::pipeline::{Ask, Finding, Role, Stage, StageResult, Step};

/// Asks the classifier; a question out of scope ends here, without SQL.
pub async fn intent(stage: Stage<Turn>) -> StageResult<Turn> {
    let survey = surveyed(&stage)?;
    let evidence = Linker::new(&survey.catalogue).rank(stage.query()).evidence;
    let variables = with_question(
        &stage,
        json!({ "tables": tables_in_short(survey), "evidence": format!("{evidence:.2}") }),
    );
    let ask = Ask::new(Role::Classifier, "intent", "intent").prompt("analyst_intent", variables);
    let intent: Intent = stage.ask(ask).await?;
    let update = TurnUpdate::new().intent(Some(intent.clone()));
    Ok(match intent.intent {
        IntentKind::DataQa | IntentKind::AnalyticsReport => Step::next(update),
        IntentKind::GeneralQa => Step::goto("interpret", update),
        IntentKind::OutOfScope => {
            let tables: Vec<String> =
                survey.catalogue.tables.iter().take(8).map(|table| table.name.shown()).collect();
            let text = format!(
                "This cannot be answered from the database: {} It holds: {}.",
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
