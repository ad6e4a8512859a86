//! Has a second model look at the statement before it runs.

use serde_json::json;

use super::super::MAX_ATTEMPTS;
use super::super::answers::SqlReview;
use super::super::turn::{Turn, TurnUpdate};
use super::{attempted, with_question};
use crate::pipeline::{Ask, Role, Stage, StageResult, Step};

/// Asks the reviewer; what it objects to leads back to writing, as long as attempts are left.
pub async fn review(stage: Stage<Turn>) -> StageResult<Turn> {
    let state = stage.state();
    let variables = with_question(
        &stage,
        json!({
            "draft": state.draft,
            "checked": state.checked,
            "pack": state.pack,
            "attempts": state.attempts,
        }),
    );
    let ask = Ask::new(Role::Reflector, "review", "sql_review").prompt("analyst_review", variables);
    let review: SqlReview = stage.ask(ask).await?;
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
