//! Learns what the server speaks and holds, and starts the turn afresh.

use super::super::server;
use super::super::turn::{Turn, TurnUpdate};
use crate::pipeline::{Stage, StageResult, Step};

/// Asks the server; what the user answered before a rejection stays answered.
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
