//! Runs a recorded thread again, offline, from its journal, and compares every step byte by byte.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::outcome::Error;
use super::run::Runner;
use super::task::{Ended, Surroundings};
use crate::checkpoint::{Error as StoreError, StepKind, StepRow, ThreadInfo, stand_up};
use crate::graph::{Command, Engine, EngineError, Event, Frontier, Limits, Position, State, Wants};
use crate::ids::ThreadId;
use crate::journal::{Mode, Recorded};

/// Steps read from the store at a time.
const PAGE: u64 = 64;

/// How a replay went.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayReport {
    pub thread: ThreadId,
    /// The first step that was looked at; later than 1 where older ones were dropped.
    pub from: u64,
    /// Steps that were run again and committed the same bytes.
    pub replayed: u64,
    /// Inputs and edits, which are taken as they are stored.
    pub taken: u64,
    /// The first step that went otherwise, if any; nothing after it was looked at.
    pub divergence: Option<Divergence>,
}

/// Where and how a replay left the recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    pub step: u64,
    /// The first node, in frontier order, that did not do what it had done.
    pub node: String,
    /// What is different, in a sentence.
    pub reason: String,
    /// What is stored.
    pub expected: Value,
    /// What the replay came to; null where it came to nothing.
    pub actual: Value,
}

/// What a step came to when it ran again.
enum Again {
    Same,
    Other { delta: Vec<u8>, frontier: Vec<u8> },
    Failed { node: String, message: String },
}

impl<S: State> Runner<S> {
    /// Runs a recorded thread again from its journal, without performing or writing anything.
    ///
    /// Inputs and edits are taken as stored; subgraphs are read as they ended, replay theirs on their
    /// own thread. Every other step must commit the bytes it committed then.
    ///
    /// # Errors
    /// Whatever the store reports; a divergence is not an error but part of the report.
    pub async fn replay(&self, thread: ThreadId) -> Result<ReplayReport, Error> {
        let info = self.read(thread).await?.info;
        let lineage = self.lineage(&info).await?;
        let from = self.first_known(thread, info.head).await?;
        let mut report = ReplayReport { thread, from, replayed: 0, taken: 0, divergence: None };
        let before = stand_up::<S>(self.store().as_ref(), thread, Some(from - 1)).await?;
        let (mut state, mut frontier) = (before.state, before.frontier);
        let mut seq = from;
        while seq <= info.head {
            let mut page = self
                .store()
                .history(thread, Some((seq + PAGE).min(info.head + 1)), PAGE as u32)
                .await?;
            page.retain(|row| row.seq >= seq);
            page.reverse();
            for row in page {
                if row.seq != seq {
                    let reason = "it is missing in the database".to_owned();
                    return Err(StoreError::Corrupt { thread, seq, reason }.into());
                }
                if row.kind == StepKind::Loop {
                    let owner = owner(&lineage, seq);
                    let was = (state, frontier.clone());
                    match self.step_again(owner, &row, was).await? {
                        (Again::Same, merged) => state = merged,
                        (other, _) => {
                            report.divergence = Some(divergence(&row, &frontier, other)?);
                            return Ok(report);
                        }
                    }
                    report.replayed += 1;
                } else {
                    state = stand_up::<S>(self.store().as_ref(), thread, Some(seq)).await?.state;
                    report.taken += 1;
                }
                frontier = frontier_of(thread, &row)?;
                seq += 1;
            }
        }
        Ok(report)
    }

    /// Returns the threads whose steps this one has, each with the last of them: itself, then those it was forked from.
    async fn lineage(&self, info: &ThreadInfo) -> Result<Vec<(ThreadInfo, u64)>, Error> {
        let mut lineage = vec![(info.clone(), info.head)];
        let mut next = info.forked_from;
        while let Some((parent, upto)) = next {
            let parent = self.store().info(parent).await?;
            next = parent.forked_from;
            lineage.push((parent, upto));
        }
        Ok(lineage)
    }

    /// Finds the oldest step whose predecessor can still be stood up.
    async fn first_known(&self, thread: ThreadId, head: u64) -> Result<u64, Error> {
        match self.store().history(thread, Some(2), 1).await?.is_empty() {
            false => Ok(1),
            true if head == 0 => Ok(1),
            true => {
                // Older steps were dropped: those that are left are few enough to be listed.
                let rows = self.store().history(thread, None, u32::MAX).await?;
                // The oldest follows a snapshot that carries no frontier, so it cannot run again.
                Ok(rows.last().map_or(head, |oldest| oldest.seq) + 1)
            }
        }
    }

    /// Runs one step again over the state before it.
    async fn step_again(
        &self,
        owner: &ThreadInfo,
        row: &StepRow,
        (state, frontier): (Arc<S>, Frontier),
    ) -> Result<(Again, Arc<S>), Error> {
        let effects = self.store().effects(owner.id, Some(row.seq)).await?;
        let recorded: Arc<Recorded> = Arc::new(effects.into_iter().collect());
        let position = Position { state, head: row.seq - 1, frontier, done: Vec::new() };
        let limits = Limits { max_steps: 1, ..Limits::default() };
        let mut engine = Engine::new(Arc::clone(self.graph()), position, limits, Wants::default());
        let around = Surroundings::<S> {
            store: Arc::clone(self.store()),
            thread: owner.id,
            run: row.run,
            // Never a valid token: whatever tried to write would be refused.
            fence: 0,
            namespace: owner.namespace.clone().into(),
            stop: CancellationToken::new(),
            wants: Wants::default(),
            events: None,
        };
        let mut tasks: FuturesUnordered<BoxFuture<'static, Ended<S>>> = FuturesUnordered::new();
        let mut out = Vec::new();
        engine.start(&mut out);
        loop {
            for command in out.drain(..) {
                match command {
                    Command::Run(mut run) => {
                        run.after = None;
                        tasks.push(around.launch(run, Mode::Replay, Arc::clone(&recorded)));
                    }
                    Command::Commit { delta, frontier, .. } => {
                        let again = match same_json(&delta, &row.delta.to_json_bytes()?)
                            && same_json(&frontier, &row.frontier)
                        {
                            true => Again::Same,
                            false => Again::Other { delta, frontier },
                        };
                        return Ok((again, Arc::clone(engine.state())));
                    }
                    Command::SavePending { .. } | Command::Emit(_) => {}
                    other => {
                        let (node, message) = why(other);
                        return Ok((failed(node, message), Arc::clone(engine.state())));
                    }
                }
            }
            let Some((task, result)) = tasks.next().await else {
                return Ok((
                    failed(String::new(), "nothing was to run".into()),
                    Arc::clone(engine.state()),
                ));
            };
            engine.handle(Event::Ended { task, result }, &mut out);
        }
    }
}

/// Says why a step that was committed then does not come to its commit now.
fn why<S: State>(command: Command<S>) -> (String, String) {
    match command {
        Command::Fail(EngineError::Node { node, message, .. }) => (node, message),
        Command::Fail(EngineError::UnknownTarget { node, target }) => {
            (node, format!("it leads to an unknown node: {target}"))
        }
        Command::Fail(EngineError::Missing { node }) => (node, "it no longer exists".to_owned()),
        Command::Fail(error) => (String::new(), error.to_string()),
        Command::Suspend(open) => {
            let node = open.into_iter().next().map_or_else(String::new, |one| one.node);
            (node, "it asks a person, which the recorded run did not".to_owned())
        }
        _ => (String::new(), "nothing was to run".to_owned()),
    }
}

fn failed(node: String, message: String) -> Again {
    Again::Failed { node, message }
}

/// Returns the thread under whose id a step ran.
fn owner(lineage: &[(ThreadInfo, u64)], seq: u64) -> &ThreadInfo {
    let mut found = &lineage[0].0;
    for (info, upto) in &lineage[1..] {
        if seq > *upto {
            break;
        }
        found = info;
    }
    found
}

fn frontier_of(thread: ThreadId, row: &StepRow) -> Result<Frontier, Error> {
    serde_json::from_slice(&row.frontier).map_err(|error| {
        let reason = format!("its frontier cannot be read: {error}");
        StoreError::Corrupt { thread, seq: row.seq, reason }.into()
    })
}

/// Compares bytes, and where they differ the values: a hash map's order is no divergence.
fn same_json(one: &[u8], other: &[u8]) -> bool {
    one == other || (!one.is_empty() && value(one) == value(other))
}

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or(Value::Null)
}

/// Names the first node that did otherwise, with what it wrote then and now.
fn divergence(row: &StepRow, frontier: &Frontier, again: Again) -> Result<Divergence, Error> {
    let stored = value(&row.delta.to_json_bytes()?);
    let step = row.seq;
    let (delta, next) = match again {
        Again::Same => (Vec::new(), Vec::new()),
        Again::Other { delta, frontier } => (value_list(&delta), frontier),
        Again::Failed { node, message } => {
            let expected = written_by(&stored, frontier, &node);
            return Ok(Divergence { step, node, reason: message, expected, actual: Value::Null });
        }
    };
    let written = stored.as_array().cloned().unwrap_or_default();
    let first = written.iter().zip(&delta).find(|(then, now)| then != now);
    let name = |one: &Value| one["n"].as_str().unwrap_or_default().to_owned();
    Ok(match first {
        Some((then, now)) => Divergence {
            step,
            node: name(then),
            reason: "it wrote something else".to_owned(),
            expected: then["u"].clone(),
            actual: now["u"].clone(),
        },
        None => Divergence {
            step,
            node: written.last().map(name).unwrap_or_default(),
            reason: "the step leads elsewhere".to_owned(),
            expected: value(&row.frontier),
            actual: value(&next),
        },
    })
}

fn value_list(json: &[u8]) -> Vec<Value> {
    serde_json::from_slice(json).unwrap_or_default()
}

fn written_by(stored: &Value, frontier: &Frontier, node: &str) -> Value {
    let task = frontier.tasks.iter().position(|task| task.node == node);
    task.map_or(Value::Null, |task| stored[task]["u"].clone())
}
