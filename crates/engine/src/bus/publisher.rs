//! Publishes a run on the bus in a separate task: its events in order, and from the steps' rows the events that were
//! left out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::Bus;
use super::event_queue::{Ending, EventJson, EventQueue, EventSender, Waiting};
use crate::checkpoint::{Encoded, Error, EventPosition, EventRow, Fence, Result, StepKind};
use crate::clock;
use crate::graph::{EndStatus, RunEvent, State};
use crate::ids::RunId;

/// How long events are collected before they are written: often enough for an eye that reads along.
const BATCH_WINDOW: Duration = Duration::from_millis(75);

/// How long it is until a write that failed is tried again.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long the end of a run waits for its last events; the next run publishes missing ones.
const FAREWELL: Duration = Duration::from_secs(5);

/// The facts about a claimed thread that a publisher needs.
#[derive(Clone, Debug)]
pub struct RunToPublish {
    /// The right to write to the thread.
    pub fence: Fence,
    /// ID of the run.
    pub run: RunId,
    /// How far the thread's log reached when the thread was claimed.
    pub events: EventPosition,
    /// Newest committed step.
    pub head: u64,
    /// The nodes that run after it.
    pub next: Vec<String>,
    /// Whether the run continues an earlier one, without a new input.
    pub continues: bool,
}

/// Publishes one run; dropping it ends it immediately, as the end of the process would.
pub struct Publisher {
    event_queue: Arc<EventQueue>,
    task: AbortOnDropHandle<()>,
}

impl Publisher {
    /// Starts to publish a run.
    pub fn begin<S: State>(bus: Arc<dyn Bus>, published: RunToPublish) -> Self {
        let event_queue = Arc::<EventQueue>::default();
        let working = work::<S>(bus, published, Arc::clone(&event_queue));
        Self { event_queue, task: AbortOnDropHandle::new(tokio::spawn(working.in_current_span())) }
    }

    /// Returns the queue for the run's events.
    pub fn sender(&self) -> EventSender {
        EventSender(Arc::clone(&self.event_queue))
    }

    /// Publishes the run's end after all its events, and waits for that within a bound.
    ///
    /// `head` is the newest committed step, if it is known. To be called while the thread is still held.
    pub async fn end(self, head: Option<u64>, status: EndStatus, error: Option<String>) {
        self.event_queue.end(Ending { head, status, error });
        if tokio::time::timeout(FAREWELL, self.task).await.is_err() {
            tracing::warn!(
                "the run's last events could not be published; the next run publishes its steps"
            );
        }
    }
}

/// Writes the queue until the run has ended or lost its thread.
async fn work<S: State>(bus: Arc<dyn Bus>, published: RunToPublish, event_queue: Arc<EventQueue>) {
    let thread = published.fence.thread;
    let Some(()) = write_to_end::<S>(&bus, &published, &event_queue).await else { return };
    match event_queue.dropped() {
        0 => {}
        dropped => tracing::warn!(dropped, %thread, "events were left out"),
    }
    bus.prune().await;
}

/// Writes until the run has ended; `None` if another process has claimed the thread, or it was deleted.
async fn write_to_end<S: State>(
    bus: &Arc<dyn Bus>,
    published: &RunToPublish,
    event_queue: &EventQueue,
) -> Option<()> {
    let mut log_writer = loop {
        match EventLogWriter::open::<S>(bus, published).await {
            Ok(log_writer) => break log_writer,
            Err(error) => wait_after(&error).await?,
        }
    };
    loop {
        // First, the events that earlier runs did not publish.
        while let Err(error) = log_writer.write().await {
            wait_after(&error).await?;
        }
        event_queue.filled().await;
        tokio::select! {
            () = event_queue.ended() => {}
            () = clock::sleep(BATCH_WINDOW) => {}
        }
        let (waiting, ending) = event_queue.take();
        while let Err(error) = log_writer.line_up::<S>(&waiting).await {
            wait_after(&error).await?;
        }
        let Some(ending) = ending else { continue };
        while let Err(error) = log_writer.line_up_end::<S>(&ending).await {
            wait_after(&error).await?;
        }
        while let Err(error) = log_writer.write().await {
            wait_after(&error).await?;
        }
        return Some(());
    }
}

/// Waits until a failed write can be tried again; `None` if that cannot succeed: another process has claimed the thread, or
/// it was deleted.
async fn wait_after(error: &Error) -> Option<()> {
    let is_over = matches!(
        error,
        Error::Fenced { .. } | Error::UnknownThread(_) | Error::EventGap { .. } | Error::Damaged(_)
    );
    tracing::debug!(%error, is_over, "events could not be published");
    if is_over {
        return None;
    }
    clock::sleep(PATIENCE).await;
    Some(())
}

/// Events of one batch at most.
const BATCH: usize = 256;

/// Steps read at a time, to publish their ends.
const STEPS: u32 = 64;

/// An event ready to be written, with the newest step whose end is published with it.
struct Line {
    step: u64,
    event: EventJson,
}

/// The only writer of a thread's log while its run holds the thread.
struct EventLogWriter<'a> {
    bus: Arc<dyn Bus>,
    published: &'a RunToPublish,
    /// Id of the newest event.
    last: u64,
    /// Newest step whose end was published.
    step: u64,
    lines: VecDeque<Line>,
}

impl<'a> EventLogWriter<'a> {
    /// Finds the end of the log, and the events to publish first: the ends of steps that were committed before, and the
    /// restart of a step.
    async fn open<S: State>(bus: &Arc<dyn Bus>, published: &'a RunToPublish) -> Result<Self> {
        let mark = published.events;
        let step = if mark.last > 0 {
            mark.step
        } else if published.continues {
            let forked_from = bus.store().info(published.fence.thread).await?.forked_from;
            forked_from.map_or(0, |(_, seq)| seq)
        } else {
            // The input is the head.
            published.head.saturating_sub(1)
        };
        let bus = Arc::clone(bus);
        let lines = VecDeque::new();
        let mut log_writer = Self { bus, published, last: mark.last, step, lines };
        let mut lines = log_writer.missing::<S>(step, published.head).await?;
        if published.continues && mark.last > 0 {
            let event = event_of(&RunEvent::<S>::StepRestarted { step: published.head + 1 });
            lines.push(Line { step: published.head.max(step), event });
        }
        log_writer.lines = lines.into();
        Ok(log_writer)
    }

    /// Queues events: the end of each step once, with the ends that were left out before it.
    async fn line_up<S: State>(&mut self, waiting: &[Waiting]) -> Result<()> {
        let mut step = self.newest();
        let mut lines = Vec::new();
        for one in waiting {
            match one.ends {
                // It is published already: before the commit of the step was known to be lost.
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

    async fn line_up_end<S: State>(&mut self, ending: &Ending) -> Result<()> {
        let step = self.newest();
        let head = ending.head.unwrap_or(step);
        let lines = self.missing::<S>(step, head).await?;
        self.lines.extend(lines);
        let Ending { status, error, .. } = ending.clone();
        let event = event_of(&RunEvent::<S>::RunEnded { step: head, status, error });
        self.lines.push_back(Line { step: head.max(step), event });
        Ok(())
    }

    /// Writes everything in line; after an error the rest stays in line.
    ///
    /// The same batch may be written again after an error: it is known by its ids and its run.
    async fn write(&mut self) -> Result<()> {
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
            self.lines.drain(..count);
        }
        Ok(())
    }

    /// Returns the newest step whose end is published or queued.
    fn newest(&self) -> u64 {
        self.lines.back().map_or(self.step, |line| line.step)
    }

    /// Publishes the ends of the steps after `after` up to `upto` from their rows.
    async fn missing<S: State>(&self, after: u64, upto: u64) -> Result<Vec<Line>> {
        let RunToPublish { head, ref next, .. } = *self.published;
        // That of an input, as a rule: it needs no read.
        if upto == head && after + 1 == head {
            let event = event_of(&RunEvent::<S>::Checkpoint { step: head, next: next.clone() });
            return Ok(vec![Line { step: head, event }]);
        }
        let mut lines = Vec::new();
        let mut before = upto + 1;
        'reading: while before > after + 1 {
            let store = self.bus.store();
            let rows = store.history(self.published.fence.thread, Some(before), STEPS).await?;
            for row in &rows {
                if row.seq <= after {
                    break 'reading;
                }
                let next = row.frontier()?.names();
                let event = event_of(&RunEvent::<S>::Checkpoint { step: row.seq, next });
                lines.push(Line { step: row.seq, event });
                // The log of a thread without events begins with the current input.
                if self.last == 0 && row.kind == StepKind::Input {
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

fn event_of<S: State>(event: &RunEvent<S>) -> EventJson {
    EventJson::whole(event).unwrap_or(EventJson::Piece(Value::Null))
}
