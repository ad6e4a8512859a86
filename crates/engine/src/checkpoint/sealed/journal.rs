//! Effects and questions, which are found by blinded keys.

use async_trait::async_trait;

use super::{
    super::{
        EffectRow, EffectSettlement, Effects, Encoded, Error, Fence, OpenInterrupt, Questions,
    },
    SealedStore, values,
};
use crate::ids::{InterruptId, ThreadId};

#[async_trait]
impl Effects for SealedStore {
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error> {
        let seal = |effect| values::seal_effect(&self.keys, fence.thread, effect);
        let sealed = effects.iter().map(seal).collect::<Result<Vec<_>, _>>()?;
        self.inner.record_effects(fence, &sealed).await
    }

    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error> {
        let thread = fence.thread;
        let seal = |outcome: &Encoded| {
            values::seal_outcome(&self.keys, thread, &end.key, end.status, outcome)
        };
        let outcome = end.outcome.as_ref().map(seal).transpose()?;
        for key in self.stored_keys(&end.key) {
            let stored = EffectSettlement { key, outcome: outcome.clone(), ..end.clone() };
            match self.inner.settle_effect(fence, &stored).await {
                Err(Error::UnknownEffect { .. }) => {}
                other => return other,
            }
        }
        if self.is_settled(thread, end).await? {
            Ok(())
        } else {
            Err(Error::UnknownEffect { thread, step: end.step, task: end.task })
        }
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        let rows = self.inner.effects(thread, step).await?;
        self.open_effects(thread, rows).await
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        let rows = self.inner.effects_from(thread, step).await?;
        self.open_effects(thread, rows).await
    }
}

#[async_trait]
impl Questions for SealedStore {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        let rows = self.inner.open_interrupts(thread).await?;
        rows.into_iter().map(|row| values::open_question(&self.keys, row)).collect()
    }

    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>, Error> {
        for stored in self.stored_interrupts(interrupt) {
            if let Some(thread) = self.inner.asked_below(stored).await? {
                return Ok(Some(thread));
            }
        }
        Ok(None)
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        let answer = values::seal_answer(&self.keys, interrupt, answer)?;
        for stored in self.stored_interrupts(interrupt) {
            match self.inner.answer(stored, &answer).await {
                Err(Error::UnknownInterrupt(_)) => {}
                Err(Error::InterruptClosed(_)) => return Err(Error::InterruptClosed(interrupt)),
                other => return other,
            }
        }
        Err(Error::UnknownInterrupt(interrupt))
    }
}
