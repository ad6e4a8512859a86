//! Has the model write the statement, in the server's dialect and a second one.

use serde_json::json;

use super::super::answers::SqlDraft;
use super::super::turn::{SqlDialect, Turn, TurnUpdate};
use super::{surveyed, with_question};
use crate::pipeline::{Ask, Role, Stage, StageResult, Step};
use perihelion_analysis::Dialect;

/// Returns the dialect in which the statement is written a second time.
pub fn secondary(primary: SqlDialect) -> SqlDialect {
    match primary {
        SqlDialect::TSql => SqlDialect::Sqlite,
        _ => SqlDialect::TSql,
    }
}

/// Asks for a statement, with what it stands on and what went wrong before.
pub async fn generate(stage: Stage<Turn>) -> StageResult<Turn> {
    let survey = surveyed(&stage)?;
    stage.progress("writing SQL");
    let variables = with_question(
        &stage,
        json!({
            "dialect": Dialect::from(survey.dialect).title(),
            "secondary_dialect": Dialect::from(secondary(survey.dialect)).title(),
            "pack": stage.state().pack,
            "attempts": stage.state().attempts,
        }),
    );
    let ask = Ask::new(Role::Agent, "generate", "sql_draft").prompt("analyst_generate", variables);
    let draft: SqlDraft = stage.ask(ask).await?;
    let mut assumptions = stage.state().assumptions.clone();
    for assumption in &draft.assumptions {
        if !assumptions.contains(assumption) {
            assumptions.push(assumption.clone());
        }
    }
    Ok(Step::next(TurnUpdate::new().draft(Some(draft)).assumptions(assumptions)))
}
