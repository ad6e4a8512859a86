//! Effects, questions (which are effects), event logs, and pending exports of traces.

use std::time::Duration;

use async_trait::async_trait;

use super::super::limits::{moment, text};
use super::super::{
    EffectKind, EffectRow, EffectSettlement, EffectStatus, Effects, Encoded, Error, EventPosition,
    EventRow, Events, Fence, OpenInterrupt, Outbox, PendingExport, Questions, Result, ThreadStatus,
};
use super::MemoryStore;
use super::state::State;
use crate::clock;
use crate::ids::{InterruptId, ThreadId};

#[async_trait]
impl Effects for MemoryStore {
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<()> {
        let state = &mut *self.state.lock();
        state.fenced(fence)?;
        effects.iter().try_for_each(|effect| state.keep_effect(fence.thread, effect))
    }

    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<()> {
        let state = &mut *self.state.lock();
        let thread = fence.thread;
        let unknown = Error::UnknownEffect { thread, step: end.step, task: end.task };
        let kept = state.fenced(fence)?;
        let Some(effect) = kept.effects.get_mut(&(end.step, end.task, end.key.clone())) else {
            return Err(unknown);
        };
        if effect.status == EffectStatus::Done {
            let repeated = effect.status == end.status && effect.outcome == end.outcome;
            return if repeated { Ok(()) } else { Err(unknown) };
        }
        effect.status = end.status;
        effect.outcome = end.outcome.clone();
        effect.attempt = end.attempt;
        effect.ended_at = (end.status != EffectStatus::Started).then(|| moment(clock::now()));
        Ok(())
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>> {
        let (first, last) = step.map_or((0, u64::MAX), |step| (step, step));
        Ok(self.state.lock().get(thread)?.effects_between(first, last))
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>> {
        Ok(self.state.lock().get(thread)?.effects_between(step, u64::MAX))
    }
}

#[async_trait]
impl Questions for MemoryStore {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>> {
        let state = self.state.lock();
        state.get(thread)?;
        let mut open: Vec<(u32, OpenInterrupt)> = state
            .interrupts
            .iter()
            .filter_map(|(key, (owner, place))| {
                let kept = state.threads.get(owner)?;
                let effect = kept.effects.get(place)?;
                let concerned = *owner == thread || kept.info.root == Some(thread);
                let open = effect.status == EffectStatus::Started;
                let id = uuid::Uuid::from_slice(key).ok().filter(|_| concerned && open)?;
                let question = OpenInterrupt {
                    id: InterruptId(id),
                    thread: *owner,
                    step: effect.step,
                    task: effect.task,
                    kind: effect.name.clone(),
                    payload: effect.request.clone(),
                    asked_at: effect.started_at,
                };
                Some((effect.number, question))
            })
            .collect();
        open.sort_unstable_by_key(|(number, it)| {
            (it.asked_at, it.thread, it.step, it.task, *number)
        });
        Ok(open.into_iter().map(|(_, question)| question).collect())
    }

    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>> {
        let state = self.state.lock();
        let Some((owner, place)) = state.interrupts.get(&interrupt.0.as_bytes()[..]) else {
            return Ok(None);
        };
        let kept = state.get(*owner)?;
        let asked = kept.effects.get(place).filter(|it| it.status == EffectStatus::Started);
        Ok(asked.map(|_| kept.info.top()))
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<()> {
        let state = &mut *self.state.lock();
        let unknown = Error::UnknownInterrupt(interrupt);
        let Some((asking, place)) = state.interrupts.get(interrupt.0.as_bytes().as_slice()) else {
            return Err(unknown);
        };
        let asking = state.threads.get_mut(asking).ok_or(Error::UnknownThread(*asking))?;
        let top = asking.info.top();
        let effect = asking.effects.get_mut(place).ok_or(unknown)?;
        if effect.status != EffectStatus::Started {
            return Err(Error::InterruptClosed(interrupt));
        }
        let now = moment(clock::now());
        effect.status = EffectStatus::Done;
        effect.outcome = Some(answer.clone());
        effect.ended_at = Some(now);
        let top = state.get_mut(top)?;
        match top.info.status {
            ThreadStatus::Interrupted => top.info.status = ThreadStatus::Queued,
            ThreadStatus::Busy => top.woken = true,
            _ => return Ok(()),
        }
        top.info.updated_at = now;
        Ok(())
    }
}

#[async_trait]
impl Events for MemoryStore {
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<()> {
        let state = &mut *self.state.lock();
        let kept = state.fenced(fence)?;
        let thread = fence.thread;
        let first = batch.first;
        let last = kept.position.last;
        if first != last + 1 {
            let same =
                |row: &EventRow| (row.first, row.count, row.run) == (first, batch.count, batch.run);
            return if kept.events.iter().any(same) {
                Ok(())
            } else {
                Err(Error::EventGap { thread, first, last })
            };
        }
        kept.position = EventPosition { last: batch.last(), step: batch.step };
        kept.events.push(EventRow { at: moment(clock::now()), ..batch.clone() });
        Ok(())
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition> {
        Ok(self.state.lock().get(thread)?.position)
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>> {
        let state = self.state.lock();
        let newer = state.get(thread)?.events.iter().skip_while(|row| row.last() <= after);
        Ok(newer.take(limit as usize).cloned().collect())
    }

    async fn prune_events(&self, kept_for: Duration, most: u32) -> Result<u64> {
        let state = &mut *self.state.lock();
        let before = moment(clock::now())
            - chrono::TimeDelta::from_std(kept_for).unwrap_or(chrono::TimeDelta::MAX / 2);
        let mut left = most;
        for kept in state.threads.values_mut() {
            if matches!(kept.info.status, ThreadStatus::Busy | ThreadStatus::Queued) {
                continue;
            }
            kept.events.retain(|row| {
                let goes = left > 0 && row.at <= before;
                left -= u32::from(goes);
                !goes
            });
        }
        Ok(u64::from(most - left))
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn pending(
        &self,
        after: Option<&PendingExport>,
        limit: u32,
    ) -> Result<Vec<PendingExport>> {
        let state = self.state.lock();
        let place = |export: &PendingExport| (export.since, export.thread.0);
        let wanted = |export: &&PendingExport| {
            state.threads.contains_key(&export.thread)
                && after.is_none_or(|after| place(export) > place(after))
        };
        let mut exports: Vec<PendingExport> =
            state.exports.values().filter(wanted).cloned().collect();
        exports.sort_by_key(place);
        exports.truncate(limit as usize);
        Ok(exports)
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.pending(None, u32::MAX).await?.len() as u64)
    }

    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>> {
        let state = self.state.lock();
        Ok(state.exports.get(&thread).filter(|_| state.threads.contains_key(&thread)).cloned())
    }

    async fn paid(&self, thread: ThreadId, run: u32) -> Result<()> {
        let mut state = self.state.lock();
        if state.exports.get(&thread).is_some_and(|export| export.to_run <= run) {
            state.exports.remove(&thread);
        } else if let Some(export) = state.exports.get_mut(&thread) {
            export.from_run = export.from_run.max(run + 1);
        }
        Ok(())
    }
}

impl State {
    /// Stores the first record under a key; a repetition is ignored, and that of a question under any place.
    pub(super) fn keep_effect(&mut self, thread: ThreadId, effect: &EffectRow) -> Result<()> {
        if effect.kind == EffectKind::Interrupt && self.interrupts.contains_key(&effect.key) {
            return Ok(());
        }
        let place = (effect.step, effect.task, effect.key.clone());
        let row = EffectRow {
            name: text(&effect.name).into_owned(),
            started_at: moment(effect.started_at),
            ended_at: effect.ended_at.map(moment),
            ..effect.clone()
        };
        self.get_mut(thread)?.effects.entry(place.clone()).or_insert(row);
        if effect.kind == EffectKind::Interrupt {
            self.interrupts.insert(effect.key.clone(), (thread, place));
        }
        Ok(())
    }
}
