//! The stages of the analyst: the question, the statement, the rows, their meaning.
//!
//! Enter at [`survey`]. Invariant: each is a step that is committed before the next one; errors go to [`triage`], which
//! leads back or ends. Deliberately absent: anything that is not in the turn's state.

mod check;
mod clarify;
mod generate;
mod ground;
mod interpret;

pub use check::{check, execute};
pub use clarify::{clarify, intent};
pub use generate::{generate, review, triage};
pub use ground::ground;
pub use interpret::interpret;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::server;
use super::turn::{Answered, Attempt, Survey, Turn, TurnUpdate};
use crate::pipeline::{
    AgentError, Ask, Clarification, ErrorKind, Role, Stage, StageError, StageResult, Step,
};

fn surveyed(stage: &Stage<Turn>) -> Result<&Survey, StageError> {
    stage.state().survey.as_ref().ok_or_else(|| {
        AgentError::new(ErrorKind::Configuration, "the database was not surveyed").into()
    })
}

fn attempted(stage: &Stage<Turn>, sql: &str, by: &str, error: &str) -> Vec<Attempt> {
    let mut attempts = stage.state().attempts.clone();
    attempts.push(Attempt { sql: sql.to_owned(), by: by.to_owned(), error: error.to_owned() });
    attempts
}

/// Asks a model about the question, by the template of a stage; the answer has the schema of that name.
async fn asked<T: JsonSchema + DeserializeOwned + 'static>(
    stage: &Stage<Turn>,
    role: Role,
    (name, schema): (&str, &str),
    more: Value,
) -> Result<T, StageError> {
    let prompt = with_question(stage, more);
    stage.ask(Ask::new(role, name, schema).prompt(format!("analyst_{name}"), prompt)).await
}

/// Asks the user, and adds the answer to an update.
async fn answered(
    stage: &Stage<Turn>,
    clarification: Clarification,
    update: TurnUpdate,
) -> Result<TurnUpdate, StageError> {
    let state = stage.state();
    let question = clarification.question.clone();
    let answer = stage.clarify(clarification).await?;
    let mut answers = state.answers.clone();
    answers.push(Answered { question, answer });
    Ok(update.answers(answers).rounds(state.rounds + 1))
}

fn with_question(stage: &Stage<Turn>, more: Value) -> Value {
    let previous = stage.previous().map(|result| {
        json!({
            "task": result.task,
            "output": result.output.chars().take(2_000).collect::<String>(),
            "sql": result.sources.iter().find_map(|source| source.quote.clone()),
        })
    });
    let mut all = stage.variables(more);
    all["previous"] = json!(previous);
    all["answers"] = json!(stage.state().answers);
    all["assumptions"] = json!(stage.state().assumptions);
    all
}

/// Returns the tables in a few lines, within a bound.
fn tables_in_short(survey: &Survey) -> String {
    const MAX_BYTES: usize = 6_000;
    let mut text = String::new();
    for (at, table) in survey.catalogue.tables.iter().enumerate() {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let comment =
            table.comment.as_ref().map_or_else(String::new, |comment| format!(" -- {comment}"));
        let line = format!("{}({}){comment}\n", table.name.shown(), columns.join(", "));
        if text.len() + line.len() > MAX_BYTES {
            let left = survey.catalogue.tables.len() - at;
            text.push_str(&format!("… and {left} more tables\n"));
            break;
        }
        text.push_str(&line);
    }
    text
}

/// Asks the server; the user's answers before a rejection stay valid.
pub async fn survey(stage: Stage<Turn>) -> StageResult<Turn> {
    stage.progress("looking at the tables");
    let survey = server::survey(&stage).await?;
    let update = TurnUpdate::new()
        .survey(Some(survey))
        .attempts(Vec::new())
        .reviews(Vec::new())
        .triages(Vec::new())
        .draft(None)
        .checked(None)
        .preview(None);
    Ok(Step::next(update))
}
