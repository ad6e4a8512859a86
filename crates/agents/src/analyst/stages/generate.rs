//! Makes the model write the statement, in the server's dialect and a second one, and another model review it; decides
//! what to do about a failed one.

use serde_json::json;

use super::{answered, asked, attempted, surveyed};
use crate::analyst::turn::{SqlDraft, SqlReview, SqlTriage, TriageDecision, Turn, TurnUpdate};
use crate::analyst::{MAX_ATTEMPTS, MAX_ROUNDS, panels};
use crate::pipeline::{AgentError, Clarification, ErrorKind, Role, Stage, StageResult, Step};
use perihelion_analysis::Dialect;

/// Returns the dialect in which the statement is written a second time.
pub fn secondary(primary: Dialect) -> Dialect {
    match primary {
        Dialect::TSql => Dialect::Sqlite,
        _ => Dialect::TSql,
    }
}

pub async fn generate(stage: Stage<Turn>) -> StageResult<Turn> {
    let survey = surveyed(&stage)?;
    stage.progress("writing SQL");
    let more = json!({
        "dialect": survey.dialect.title(),
        "secondary_dialect": secondary(survey.dialect).title(),
        "pack": stage.state().pack,
        "attempts": stage.state().attempts,
    });
    let draft: SqlDraft = asked(&stage, Role::Agent, ("generate", "sql_draft"), more).await?;
    let mut assumptions = stage.state().assumptions.clone();
    for assumption in &draft.assumptions {
        if !assumptions.contains(assumption) {
            assumptions.push(assumption.clone());
        }
    }
    Ok(Step::next(TurnUpdate::new().draft(Some(draft)).assumptions(assumptions)))
}

/// Asks the reviewer; its objections lead back to writing, while attempts are left.
pub async fn review(stage: Stage<Turn>) -> StageResult<Turn> {
    let state = stage.state();
    let more = json!({
        "draft": state.draft,
        "checked": state.checked,
        "pack": state.pack,
        "attempts": state.attempts,
    });
    let review: SqlReview = asked(&stage, Role::Reflector, ("review", "sql_review"), more).await?;
    let mut reviews = state.reviews.clone();
    reviews.push(review.clone());
    let update = TurnUpdate::new().reviews(reviews);
    if review.approved {
        return Ok(Step::next(update));
    }
    let sql = state.draft.as_ref().map(|draft| draft.sql.as_str()).unwrap_or_default();
    let attempts = attempted(&stage, sql, "review", &review.problems.join("; "));
    let next = if attempts.len() >= MAX_ATTEMPTS { "triage" } else { "generate" };
    Ok(Step::goto(next, update.attempts(attempts)))
}

/// Asks the model with the failing statement and the database's words; four attempts are all there are.
pub async fn triage(stage: Stage<Turn>) -> StageResult<Turn> {
    let state = stage.state();
    let last = state.attempts.last().cloned();
    let error = last.as_ref().map(|attempt| attempt.error.clone()).unwrap_or_default();
    if state.attempts.len() >= MAX_ATTEMPTS {
        let message =
            format!("no statement did in {MAX_ATTEMPTS} attempts; the last error: {error}");
        return Err(failed(&stage, &state.triages, message));
    }
    let survey = surveyed(&stage)?;
    let more = json!({
        "dialect": survey.dialect.title(),
        "pack": state.pack,
        "attempts": state.attempts,
        "attempts_left": MAX_ATTEMPTS - state.attempts.len(),
    });
    let triage: SqlTriage = asked(&stage, Role::Agent, ("triage", "sql_triage"), more).await?;
    let mut triages = state.triages.clone();
    triages.push(triage.clone());
    let update = TurnUpdate::new().triages(triages.clone());
    match triage.decision {
        TriageDecision::RetryWithPatch => match triage.sql.filter(|sql| !sql.trim().is_empty()) {
            Some(sql) => {
                let draft = SqlDraft { sql, ..state.draft.clone().unwrap_or_default() };
                Ok(Step::goto("check", update.draft(Some(draft))))
            }
            None => Ok(Step::goto("generate", update)),
        },
        TriageDecision::AskClarification if state.rounds < MAX_ROUNDS => {
            let question = triage.question.unwrap_or(triage.reason);
            let question = Clarification::new(question);
            Ok(Step::goto("generate", answered(&stage, question, update).await?))
        }
        TriageDecision::AskClarification | TriageDecision::Stop => {
            let message = format!("{} The database says: {error}", triage.reason);
            Err(failed(&stage, &triages, message))
        }
    }
}

/// Fails with a list of attempts; the analysis is stored as for an answer.
fn failed(
    stage: &Stage<Turn>,
    triages: &[SqlTriage],
    message: String,
) -> crate::pipeline::StageError {
    stage.keep(panels::NAME, panels::of(stage.state(), triages, None));
    let details = json!({ "attempts": stage.state().attempts, "triages": triages });
    AgentError::new(ErrorKind::Query, message).with_details(details).into()
}
