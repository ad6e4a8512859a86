//! Decides what to do about a statement that did not do: patch it, ask, or stop.

use serde_json::json;

use super::super::MAX_ATTEMPTS;
use super::super::MAX_ROUNDS;
use super::super::answers::{SqlDraft, SqlTriage, TriageDecision};
use super::super::panels;
use super::super::turn::{Answered, Turn, TurnUpdate};
use super::{surveyed, with_question};
use crate::pipeline::{AgentError, Ask, Clarification, ErrorKind, Role, Stage, StageResult, Step};
use perihelion_analysis::Dialect;

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
    let variables = with_question(
        &stage,
        json!({
            "dialect": Dialect::from(survey.dialect).title(),
            "pack": state.pack,
            "attempts": state.attempts,
            "attempts_left": MAX_ATTEMPTS - state.attempts.len(),
        }),
    );
    let ask = Ask::new(Role::Agent, "triage", "sql_triage").prompt("analyst_triage", variables);
    let triage: SqlTriage = stage.ask(ask).await?;
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
            let answer = stage.clarify(Clarification::new(question.clone())).await?;
            let mut answers = state.answers.clone();
            answers.push(Answered { question, answer });
            let update = update.answers(answers).rounds(state.rounds + 1);
            Ok(Step::goto("generate", update))
        }
        TriageDecision::AskClarification | TriageDecision::Stop => {
            let message = format!("{} The database says: {error}", triage.reason);
            Err(failed(&stage, &triages, message))
        }
    }
}

/// Fails with what was tried; what led there is kept as it is kept of an answer.
fn failed(
    stage: &Stage<Turn>,
    triages: &[SqlTriage],
    message: String,
) -> crate::pipeline::StageError {
    stage.keep(panels::NAME, panels::of_failure(stage, triages));
    let details = json!({ "attempts": stage.state().attempts, "triages": triages });
    AgentError::new(ErrorKind::Query, message).with_details(details).into()
}
