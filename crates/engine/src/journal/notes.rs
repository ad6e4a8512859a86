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
    ///
    /// The notes are dropped only after the write: a node can give it up and continue.
    pub(super) async fn record(&self, point: Point, row: EffectRow) -> Result<()> {
        let mut notes = self.notes.lock().await;
        if notes.is_empty() {
            // Effects beside each other do not wait for each other.
            drop(notes);
            return self.write(point, &[row]).await;
        }
        let rows: Vec<_> = notes.iter().cloned().chain([row]).collect();
        self.write(point, &rows).await?;
        notes.clear();
        Ok(())
    }

    /// Writes the notes that are not stored yet, when the task passes them on or ends.
    pub(crate) async fn keep_notes(&self) -> Result<()> {
        let mut notes = self.notes.lock().await;
        if !notes.is_empty() {
            self.write(Point::NoteCommit, &notes).await?;
            notes.clear();
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::checkpoint::{
        Claim, Effects as _, Fence, Leases as _, MemoryStore, NewThread, Threads as _,
    };
    use crate::graph::{NodeLocation, Port as _};
    use crate::ids::{RunId, ThreadId};
    use crate::journal::Claimed;

    /// X2
    #[tokio::test]
    async fn notes_are_written_after_a_write_that_failed() {
        let store = Arc::new(MemoryStore::new());
        let thread = ThreadId::new();
        let new = NewThread {
            id: thread,
            graph: "story".to_owned(),
            title: None,
            root: None,
            namespace: String::new(),
            tenant: "default".to_owned(),
        };
        let made = store.create(new).await.unwrap();
        let fence = Fence::new(thread, made.fence + 1);
        let place = NodeLocation {
            thread,
            run: RunId::new(),
            step: 1,
            task: 0,
            node: "a".into(),
            attempt: 1,
            namespace: "".into(),
            tenant: "default".into(),
            request: None,
        };
        let claimed = Claimed { fence, ..Claimed::default() };
        let stop = CancellationToken::new();
        let recorded = Arc::default();
        let journal =
            TaskJournal::new(store.clone(), claimed, place, Mode::Live, recorded, stop, None);
        journal.noted_micros().await.unwrap();
        assert!(journal.random().await.is_err(), "the thread is not claimed yet");
        assert!(journal.keep_notes().await.is_err());
        store.claim(Claim::new(thread, "a", Duration::from_secs(60))).await.unwrap();
        journal.random().await.unwrap();
        let rows = store.effects(thread, None).await.unwrap();
        let kinds: Vec<_> = rows.iter().map(|row| row.kind).collect();
        assert_eq!(kinds, [EffectKind::Clock, EffectKind::Random]);
    }
}
