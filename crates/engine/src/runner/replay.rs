//! Runs a recorded thread again, offline, from its journal, and compares every step byte by byte.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use super::divergence::{
    Difference, LeftOut, ReplayReport, divergence, same_json, same_with_texts, why,
};
use super::outcome::{Error, Result};
use super::run::Runner;
use super::task::{Ended, Listeners, RunContext};
use crate::checkpoint::{
    Cause, EffectRow, Error as StoreError, Lineage, StepKind, StepRow, ThreadInfo, frontier_of,
    restore,
};
use crate::graph::{Command, Engine, Event, Frontier, Limits, NodeError, Position, State, Wants};
use crate::ids::{RunId, ThreadId};
use crate::journal::{Claimed, Mode, Recorded, verify_keys};

/// Steps read from the store at a time.
const PAGE: u64 = 64;

impl<S: State> Runner<S> {
    /// Runs a recorded thread again from its journal, without performing or writing anything; one run of it where named.
    ///
    /// Inputs and edits are read as stored. Subgraphs are read with their result; replay them on their own thread.
    /// Every other step must commit the bytes it committed then.
    ///
    /// # Errors
    /// Any error of the store; a divergence is not an error but part of the report.
    pub async fn replay(&self, thread: ThreadId, run: Option<RunId>) -> Result<ReplayReport> {
        let info = self.read(thread).await?.info;
        let store = self.store().as_ref();
        // Of the step under way, which is not run again.
        verify_keys(&info, &store.effects_from(thread, info.head + 1).await?)?;
        let lineage = Lineage::read(store, thread).await?;
        let (from, upto, left_out) = self.extent(&info, &lineage, run).await?;
        let mut report = ReplayReport {
            thread,
            from,
            left_out,
            replayed: 0,
            taken: 0,
            effects: 0,
            divergence: None,
        };
        let before = restore::<S>(store, thread, Some(from - 1)).await?;
        let mut state = before.state;
        let mut frontier = before.frontier;
        let mut seq = from;
        while seq <= upto {
            for row in self.page(thread, seq, upto).await? {
                match (row.kind, lineage.owner(&row)) {
                    (StepKind::Loop, Some(owner)) => {
                        let effects = store.effects(owner.id, Some(seq)).await?;
                        verify_keys(owner, &effects)?;
                        report.effects += effects.len() as u64;
                        let was = (state, frontier.clone());
                        match self.step_again(owner, &row, effects, was).await? {
                            Ok(merged) => state = merged,
                            Err(other) => {
                                report.divergence = Some(divergence(&row, &frontier, other)?);
                                return Ok(report);
                            }
                        }
                        report.replayed += 1;
                    }
                    _ => {
                        state = restore::<S>(store, thread, Some(seq)).await?.state;
                        report.taken += 1;
                    }
                }
                frontier = frontier_of(thread, &row)?;
                seq += 1;
            }
        }
        Ok(report)
    }

    /// Reads the next steps from `seq` on, oldest first and at least one.
    async fn page(&self, thread: ThreadId, seq: u64, upto: u64) -> Result<Vec<StepRow>> {
        let before = seq.saturating_add(PAGE).min(upto.saturating_add(1));
        let mut page = self.store().history(thread, Some(before), PAGE as u32).await?;
        page.retain(|row| row.seq >= seq);
        page.reverse();
        let is_whole = !page.is_empty() && page.iter().zip(seq..).all(|(row, seq)| row.seq == seq);
        if is_whole {
            Ok(page)
        } else {
            let missing = page.iter().zip(seq..).find(|(row, seq)| row.seq != *seq);
            let seq = missing.map_or(seq, |(_, seq)| seq);
            Err(StoreError::missing(thread, seq).into())
        }
    }

    /// Finds the first and the last step to compute again, and why earlier ones are left out.
    async fn extent(
        &self,
        info: &ThreadInfo,
        lineage: &Lineage,
        run: Option<RunId>,
    ) -> Result<(u64, u64, Option<LeftOut>)> {
        let thread = info.id;
        let head = info.head;
        let (mut from, mut left_out) = match self.first_known(thread, head).await? {
            1 => (1, None),
            later => (later, Some(LeftOut::Pruned)),
        };
        let mut first = None;
        let mut last = None;
        let mut seq = from;
        while seq <= head {
            for row in self.page(thread, seq, head).await? {
                if row.kind == StepKind::Loop && lineage.owner(&row).is_none() {
                    (from, left_out) = (row.seq + 1, Some(LeftOut::Foreign));
                }
                if run.is_some_and(|run| run == row.run) {
                    first = first.or(Some(row.seq));
                    last = Some(row.seq);
                }
                seq = row.seq + 1;
            }
        }
        if run.is_none() {
            return Ok((from, head, left_out));
        }
        // A run that committed nothing has nothing to be run again.
        let first = first.unwrap_or(from);
        let last = last.unwrap_or(from - 1);
        if first > from {
            (from, left_out) = (first, Some(LeftOut::OtherRun));
        }
        Ok((from, last, left_out))
    }

    /// Finds the oldest step whose predecessor can still be restored.
    async fn first_known(&self, thread: ThreadId, head: u64) -> Result<u64> {
        if head == 0 || !self.store().history(thread, Some(2), 1).await?.is_empty() {
            return Ok(1);
        }
        // Older steps were dropped: those that are left are few enough to be listed.
        let rows = self.store().history(thread, None, u32::MAX).await?;
        // The oldest follows a snapshot that carries no frontier, so it cannot run again.
        Ok(rows.last().map_or(head, |oldest| oldest.seq) + 1)
    }

    /// Runs one step again over the state before it; returns the state after it if it commits the same bytes.
    async fn step_again(
        &self,
        owner: &ThreadInfo,
        row: &StepRow,
        effects: Vec<EffectRow>,
        (state, frontier): (Arc<S>, Frontier),
    ) -> Result<Result<Arc<S>, Difference>> {
        let recorded: Arc<Recorded> = Arc::new(effects.into_iter().collect());
        let position = Position { state, head: row.seq - 1, frontier, done: Vec::new() };
        let limits = Limits { max_steps: 1, ..Limits::default() };
        let mut engine = Engine::new(Arc::clone(self.graph()), position, limits, Wants::default());
        let context = RunContext::<S> {
            store: Arc::clone(self.store()),
            thread: owner.id,
            run: row.run,
            // Never a valid token: the store would refuse any write.
            claimed: Claimed { made_at: owner.created_at.timestamp_micros(), ..Claimed::default() },
            namespace: owner.namespace.clone().into(),
            tenant: owner.tenant.clone().into(),
            request: None,
            stop: CancellationToken::new(),
            listeners: Listeners::new(None, Wants::default(), None),
            spans: None,
        };
        let mut tasks: FuturesUnordered<BoxFuture<'static, Ended<S>>> = FuturesUnordered::new();
        let mut out = Vec::new();
        let mut texts = Vec::new();
        engine.start(&mut out);
        loop {
            for command in out.drain(..) {
                match command {
                    Command::Run(mut run) => {
                        run.after = None;
                        tasks.push(context.launch(run, Mode::Replay, Arc::clone(&recorded)));
                    }
                    Command::Commit { delta, frontier, texts: own, .. } => {
                        texts.extend(own);
                        let recorded = row.delta.to_json_bytes()?;
                        let leads_there = same_json(&frontier, &row.frontier);
                        if leads_there && same_json(&delta, &recorded) {
                            return Ok(Ok(Arc::clone(engine.state())));
                        }
                        if leads_there && same_with_texts(&recorded, &delta, &texts) {
                            // The store has no separate rows of these texts: they stay in the recorded step.
                            let store = self.store().as_ref();
                            let read = restore::<S>(store, owner.id, Some(row.seq)).await?;
                            return Ok(Ok(read.state));
                        }
                        return Ok(Err(Difference::Written { delta, frontier }));
                    }
                    Command::SavePending { texts: own, .. } => texts.extend(own),
                    Command::Emit(_) => {}
                    other => {
                        let (node, message) = why(other);
                        let missed = recorded.missed();
                        return Ok(Err(Difference::Failed { node, message, missed }));
                    }
                }
            }
            let Some((task, result)) = tasks.next().await else {
                let (node, message) = why(Command::<S>::Finish);
                return Ok(Err(Difference::Failed { node, message, missed: None }));
            };
            if let Err(NodeError::Recorder(error)) = result {
                return Err(unreadable(owner.id, row.seq, error));
            }
            engine.handle(Event::Ended { task, result }, &mut out);
        }
    }
}

/// Says in which step something recorded cannot be read.
fn unreadable(thread: ThreadId, seq: u64, error: Cause) -> Error {
    match error.downcast::<StoreError>() {
        Ok(error) if !matches!(*error, StoreError::Damaged(_)) => (*error).into(),
        Ok(error) => {
            let reason = format!("a recorded effect of it cannot be read: {error}");
            StoreError::corrupt(thread, seq, reason).into()
        }
        Err(other) => StoreError::Damaged(other).into(),
    }
}
