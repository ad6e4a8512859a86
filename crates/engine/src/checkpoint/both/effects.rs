//! The journal's rows: read back, and bound to the statements that keep them.

use async_trait::async_trait;
use perihelion_database::{Database, Query, query};

use super::{
    super::{
        EffectRow, EffectSettlement, Effects, Error, Fence, checksum,
        limits::{big, moment, text},
        retry::retry,
    },
    Backend,
    columns::effect_columns,
    decode, info,
};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Effects for B {
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error> {
        let write = || self.record(fence, effects);
        retry(effects.iter().any(|effect| effect.outcome.is_some()), write).await
    }

    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error> {
        retry(end.outcome.is_some(), || self.settle(fence, end)).await
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        let range = step.map_or(ALL, |step| (big(step), big(step)));
        read(self.database(), thread, range).await
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        read(self.database(), thread, (big(step), i64::MAX)).await
    }
}

/// Steps from the first to the last one.
type Range = (i64, i64);

/// All steps of a thread.
pub(super) const ALL: Range = (0, i64::MAX);

const COUNTS: &str = "SELECT step, task, effects FROM effect_count
     WHERE thread_id = $1 AND step BETWEEN $2 AND $3";

const EFFECTS: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effect WHERE thread_id = $1 AND step BETWEEN $2 AND $3 ORDER BY step, task, number"
);

/// Reads how many effects each task has: first, so that no row added meanwhile is missed.
pub(super) fn counts(thread: ThreadId, (first, last): Range) -> Query {
    query(COUNTS).bind(thread.0).bind(first).bind(last)
}

/// Reads the effects of the steps in a range.
pub(super) fn effects(thread: ThreadId, (first, last): Range) -> Query {
    query(EFFECTS).bind(thread.0).bind(first).bind(last)
}

async fn read(
    database: &Database,
    thread: ThreadId,
    range: Range,
) -> Result<Vec<EffectRow>, Error> {
    let counted = database.fetch_all(&counts(thread, range)).await?;
    let rows = database.fetch_all(&effects(thread, range)).await?;
    if rows.is_empty() {
        info(database, thread).await?;
    }
    decode::effects(thread, &counted, &rows)
}

/// Binds an effect's columns after those that the statement has already, in the order of [`effect_columns`].
pub(in super::super) fn bind_effect(query: Query, thread: ThreadId, effect: &EffectRow) -> Query {
    query
        .bind(big(effect.step))
        .bind(moment(effect.started_at))
        .bind(effect.ended_at.map(moment))
        .bind(effect.task as i32)
        .bind(effect.number as i32)
        .bind(effect.attempt as i32)
        .bind(effect.request.codec as i16)
        .bind(effect.outcome.as_ref().map(|outcome| outcome.codec as i16))
        .bind(effect.kind.as_str())
        .bind(effect.status.as_str())
        .bind(text(&effect.name))
        .bind(&effect.key[..])
        .bind(&effect.request.bytes[..])
        .bind(effect.outcome.as_ref().map(|outcome| &outcome.bytes[..]))
        .bind(&checksum::request(thread, effect)[..])
        .bind(&checksum::outcome_of(effect)[..])
}
