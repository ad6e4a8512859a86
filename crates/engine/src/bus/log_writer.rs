//! Writes a run's events in order, and tells by the steps' rows what nobody told in time.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::Bus;
use super::event_queue::{Ending, EventJson, Waiting};
use super::publisher::RunToPublish;
use crate::checkpoint::{Encoded, Error, EventRow, StepKind, StepRow};
use crate::clock;
use crate::graph::{RunEvent, State};

/// Events of one batch at most.
const BATCH: usize = 256;

/// Steps read at a time, to tell their ends.
const STEPS: u32 = 64;

/// An event ready to be written, with the newest step whose end is told by then.
pub(super) struct Line {
    step: u64,
    event: EventJson,
}

/// The one writer of a thread's log, for as long as its run holds the thread.
pub(super) struct EventLogWriter {
    bus: Arc<dyn Bus>,
    published: RunToPublish,
    /// Id of the newest event.
    last: u64,
    /// Newest step whose end has been told.
    step: u64,
    /// Nothing was ever told of the thread: its log begins with the input under way.
    is_new: bool,
    pub(super) lines: VecDeque<Line>,
}

impl EventLogWriter {
    /// Finds the end of the log, and what is to be told first: steps that were committed and not told, and
    /// that a step is resumed.
    pub(super) async fn open<S: State>(
        bus: &Arc<dyn Bus>,
        published: RunToPublish,
    ) -> Result<Self, Error> {
        let store = bus.store();
        let mark = store.event_position(published.fence.thread).await?;
        let mut step = mark.step;
        if mark.last == 0 {
            let forked_from = store.info(published.fence.thread).await?.forked_from;
            step = forked_from.map_or(0, |(_, seq)| seq);
        }
        let bus = Arc::clone(bus);
        let lines = VecDeque::new();
        let is_new = mark.last == 0;
        let mut log_writer = Self { bus, published, last: mark.last, step, is_new, lines };
        let mut lines = log_writer.missing::<S>(step, published.head).await?;
        if published.continues && mark.last > 0 {
            let event = event_of(&RunEvent::<S>::StepRestarted { step: published.head + 1 });
            lines.push(Line { step: published.head.max(step), event });
        }
        log_writer.lines = lines.into();
        Ok(log_writer)
    }

    /// Puts events in line: the end of each step once, those that were left out before it included.
    pub(super) async fn line_up<S: State>(&mut self, waiting: &[Waiting]) -> Result<(), Error> {
        let mut step = self.newest();
        let mut lines = Vec::new();
        for one in waiting {
            match one.ends {
                // ThreadEvent already: the step was told before its commit was known to be lost.
                Some(seq) if seq <= step => continue,
                Some(seq) => {
                    lines.extend(self.missing::<S>(step, seq - 1).await?);
                    step = seq;
                }
                None => {}
            }
            lines.push(Line { step, event: one.event.clone() });
        }
        self.lines.extend(lines);
        Ok(())
    }

    /// Puts the run's end in line.
    pub(super) async fn line_up_end<S: State>(&mut self, ending: &Ending) -> Result<(), Error> {
        let step = self.newest();
        let head = ending.head.unwrap_or(step);
        let lines = self.missing::<S>(step, head).await?;
        self.lines.extend(lines);
        let Ending { status, ref error, .. } = *ending;
        let error = error.clone();
        let event = event_of(&RunEvent::<S>::RunEnded { step: head, status, error });
        self.lines.push_back(Line { step: head.max(step), event });
        Ok(())
    }

    /// Writes everything in line; after an error the rest stays in line.
    ///
    /// The same batch may be written again after an error: it is known by its ids and its run.
    pub(super) async fn write(&mut self) -> Result<(), Error> {
        while !self.lines.is_empty() {
            let lines: Vec<&Line> = self.lines.iter().take(BATCH).collect();
            let events: Vec<&EventJson> = lines.iter().map(|line| &line.event).collect();
            let count = lines.len();
            let batch = EventRow {
                first: self.last + 1,
                count: count as u32,
                run: self.published.run,
                step: lines.last().map_or(self.step, |line| line.step),
                body: Encoded::json(&events, self.bus.store().compress_above())?,
                at: clock::now(),
            };
            self.bus.publish(self.published.fence, &batch).await?;
            (self.last, self.step) = (batch.last(), batch.step);
            self.is_new = false;
            self.lines.drain(..count);
        }
        Ok(())
    }

    /// Returns the newest step whose end is told or in line.
    fn newest(&self) -> u64 {
        self.lines.back().map_or(self.step, |line| line.step)
    }

    /// Tells the ends of the steps after `after` up to `upto` by their rows.
    async fn missing<S: State>(&self, after: u64, upto: u64) -> Result<Vec<Line>, Error> {
        let mut lines = Vec::new();
        let mut before = upto + 1;
        'reading: while before > after + 1 {
            let store = self.bus.store();
            let rows = store.history(self.published.fence.thread, Some(before), STEPS).await?;
            for row in &rows {
                if row.seq <= after {
                    break 'reading;
                }
                lines.push(Line { step: row.seq, event: end_of::<S>(row)? });
                if self.is_new && row.kind == StepKind::Input {
                    break 'reading;
                }
            }
            match rows.last() {
                Some(row) => before = row.seq,
                // Older ones were dropped.
                None => break,
            }
        }
        lines.reverse();
        Ok(lines)
    }
}

/// Tells a step's end as the run did that committed it.
fn end_of<S: State>(row: &StepRow) -> Result<EventJson, Error> {
    let next = row.frontier()?.tasks.into_iter().map(|task| task.node).collect();
    Ok(event_of(&RunEvent::<S>::Checkpoint { step: row.seq, next }))
}

fn event_of<S: State>(event: &RunEvent<S>) -> EventJson {
    EventJson::whole(event).unwrap_or(EventJson::Piece(Value::Null))
}
