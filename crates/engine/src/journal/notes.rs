//! Rows that wait for the journal: rows without dependents are written with the next one.

use serde_json::{Value, json};

use super::task::{Mode, TaskJournal, recorder};
use crate::checkpoint::{EffectKind, EffectRow, EffectStatus};
use crate::failpoint::{Point, wrap};
use crate::graph::Result;
use crate::observer::report;

/// When a drawn value is durable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    AtOnce,
    /// With the task's next write, or when it ends.
    WithTheNext,
}

impl TaskJournal {
    /// Leaves a row to the task's next write, because until then no visible effect depends on it.
    pub(super) async fn note(&self, row: EffectRow) {
        self.notes.lock().await.push(row);
    }

    /// Records an effect, and in the same write the earlier notes.
    pub(super) async fn record(&self, point: Point, row: EffectRow) -> Result<()> {
        let mut notes = self.notes.lock().await;
        if notes.is_empty() {
            // Effects beside each other do not wait for each other.
            drop(notes);
            return self.write(point, &[row]).await;
        }
        let mut rows = std::mem::take(&mut *notes);
        rows.push(row);
        self.write(point, &rows).await
    }

    /// Writes the notes that are not stored yet, when the task passes them on or ends.
    pub(crate) async fn keep_notes(&self) -> Result<()> {
        let mut notes = self.notes.lock().await;
        match std::mem::take(&mut *notes) {
            none if none.is_empty() => Ok(()),
            rows => self.write(Point::NoteCommit, &rows).await,
        }
    }

    async fn write(&self, point: Point, rows: &[EffectRow]) -> Result<()> {
        let recorded = self.store.record_effects(self.claimed.fence, rows);
        wrap(point, recorded).await.map_err(recorder)?;
        for row in rows {
            report(|observer| observer.effect_recorded(row.kind.as_str()));
            if row.kind == EffectKind::Interrupt {
                report(|observer| observer.interrupted(&row.name));
            }
        }
        Ok(())
    }

    /// Returns the time of the store's clock, or the one recorded for the same draw.
    pub(super) async fn micros(&self, kept: Kept) -> Result<i64> {
        let now = || json!(self.claimed.clock.now().timestamp_micros());
        let value = self.draw(EffectKind::Clock, kept, now).await?;
        Ok(value.as_i64().unwrap_or_default())
    }

    /// Takes a drawn value, or the one recorded for the same draw.
    pub(super) async fn draw(
        &self,
        kind: EffectKind,
        kept: Kept,
        draw: impl FnOnce() -> Value,
    ) -> Result<Value> {
        let key = self.key(kind.as_str(), &Value::Null);
        if let Some(row @ EffectRow { outcome: Some(value), .. }) = self.found(key.as_bytes()) {
            self.count_read_back(row);
            return value.decode().map_err(recorder);
        }
        if self.mode == Mode::Replay {
            return Err(self.diverged(kind.as_str(), kind.as_str(), &Value::Null));
        }
        let value = draw();
        let mut row = self.row(key.as_bytes(), kind, kind.as_str(), &Value::Null)?;
        row.status = EffectStatus::Done;
        row.outcome = Some(self.encode(&value)?);
        row.ended_at = Some(row.started_at);
        match kept {
            Kept::AtOnce => self.record(Point::DrawCommit, row).await?,
            Kept::WithTheNext => self.note(row).await,
        }
        Ok(value)
    }
}

pub(super) fn random_bits() -> u64 {
    let hash = blake3::hash(uuid::Uuid::new_v4().as_bytes());
    let (bits, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    u64::from_le_bytes(*bits)
}
