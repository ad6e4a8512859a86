//! Performing effects: inquiries, which change nothing outside, and actions, which may.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::key::EffectKey;
use super::task::{Mode, TaskJournal, recorder};
use super::unknown::{OUTCOME_UNKNOWN, OutcomeUnknown, Verdict, verdict};
use crate::checkpoint::{EffectKind, EffectRow, EffectStatus};
use crate::failpoint::{Point, Side, reach, wrap};
use crate::graph::{EffectFailure, EffectRequest, Interrupt, NodeError, Outcome, Perform, Result};
use crate::ids::InterruptId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// How often a repeatable action is sent in one attempt at its node while its outcome stays unknown.
const REPEATS: u32 = 3;

/// Why a call is found without an outcome.
const BROKEN_OFF: &str =
    "the run was broken off between sending the call and recording its outcome";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct RecordedFailure {
    error: String,
    /// Whether the failure stays when its node is tried again, because a person decided so.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not")]
    is_final: bool,
}

impl From<String> for RecordedFailure {
    fn from(error: String) -> Self {
        Self { error, is_final: false }
    }
}

impl TaskJournal {
    /// Returns a recorded outcome; `None` if the effect must be performed (again).
    ///
    /// A recorded failure is part of the history of its node, which continued from it: a re-run after a crash or an
    /// answer must see it again. Only a retry of the node itself tries again, except after the decision of a person to
    /// skip it.
    pub(super) fn read_back(&self, found: Option<&EffectRow>) -> Result<Option<Outcome>> {
        let Some(EffectRow { status, outcome: Some(outcome), .. }) = found else {
            return Ok(None);
        };
        match status {
            EffectStatus::Done => Ok(Some(Outcome::Value(outcome.decode().map_err(recorder)?))),
            EffectStatus::Failed => {
                let failure: RecordedFailure = outcome.decode().map_err(recorder)?;
                let is_tried_again = self.mode == Mode::Again && !failure.is_final;
                Ok((!is_tried_again).then_some(Outcome::Failed(failure.error)))
            }
            EffectStatus::Started => Ok(None),
        }
    }

    /// Performs a request that changes nothing outside, and records its outcome.
    pub(super) async fn inquire(
        &self,
        request: &EffectRequest,
        key: EffectKey,
        found: Option<&EffectRow>,
        mut perform: Perform<'_>,
    ) -> Result<Outcome> {
        self.check_after_pause().await?;
        let clock = self.claimed.clock;
        let started_at = clock.now();
        let result = tokio::select! {
            // An answer that is there is kept, though the run is being stopped: it was paid for.
            biased;
            result = wrap(Point::ModelSend, perform(key.to_string())) => result,
            () = self.cancel.cancelled() => return Err(NodeError::Cancelled),
        };
        self.seen_alive();
        let (status, value, outcome) = match result {
            Ok(value) => (EffectStatus::Done, value.clone(), Outcome::Value(value)),
            Err(failure) => {
                let message = failure.to_string();
                let record = json!(RecordedFailure::from(message.clone()));
                (EffectStatus::Failed, record, Outcome::Failed(message))
            }
        };
        match found {
            Some(before) => {
                let attempt = before.attempt + 1;
                self.settle(Point::ModelCommit, &key, status, Some(&value), attempt).await?;
            }
            None => {
                let mut row =
                    self.row(key.as_bytes(), EffectKind::Model, &request.name, &request.request)?;
                row.status = status;
                row.outcome = Some(self.encode(&value)?);
                (row.started_at, row.ended_at) = (started_at, Some(clock.now()));
                self.record(Point::ModelCommit, row).await?;
            }
        }
        Ok(outcome)
    }

    /// Sends an action once its intent is durable, and records how it ended.
    ///
    /// Once sent it is awaited, whether or not the run is being stopped.
    pub(super) async fn act(
        &self,
        request: &EffectRequest,
        repeatable: bool,
        key: EffectKey,
        found: Option<&EffectRow>,
        mut perform: Perform<'_>,
    ) -> Result<Outcome> {
        let mut attempt = match found {
            None => {
                let name = &request.name;
                let request = &request.request;
                let row = self.row(key.as_bytes(), EffectKind::Tool, name, request)?;
                self.record(Point::ToolIntent, row).await?;
                1
            }
            Some(row) => {
                if row.status == EffectStatus::Started {
                    reach(Point::CallUnknown, Side::Before);
                }
                if row.status == EffectStatus::Started
                    && !repeatable
                    && let Some(outcome) =
                        self.decide(request, &key, row.attempt, BROKEN_OFF).await?
                {
                    return Ok(outcome);
                }
                let attempt = row.attempt + 1;
                self.settle(Point::ToolAttempt, &key, EffectStatus::Started, None, attempt).await?;
                attempt
            }
        };
        let last = attempt.saturating_add(REPEATS - 1);
        loop {
            let sent = wrap(Point::ToolSend, perform(key.to_string())).await;
            self.seen_alive();
            match sent {
                Ok(value) => {
                    let done = EffectStatus::Done;
                    self.settle(Point::ToolCommit, &key, done, Some(&value), attempt).await?;
                    return Ok(Outcome::Value(value));
                }
                Err(EffectFailure::NoEffect(message)) => {
                    return self.fail(&key, message.into(), attempt).await;
                }
                Err(EffectFailure::Unknown(_)) if repeatable && self.cancel.is_cancelled() => {
                    return Err(NodeError::Cancelled);
                }
                Err(EffectFailure::Unknown(message)) if repeatable && attempt >= last => {
                    return self.fail(&key, message.into(), attempt).await;
                }
                Err(EffectFailure::Unknown(_)) if repeatable => {
                    reach(Point::CallUnknown, Side::After);
                }
                Err(EffectFailure::Unknown(message)) => {
                    reach(Point::CallUnknown, Side::After);
                    if let Some(outcome) = self.decide(request, &key, attempt, &message).await? {
                        return Ok(outcome);
                    }
                }
            }
            attempt += 1;
            self.settle(Point::ToolAttempt, &key, EffectStatus::Started, None, attempt).await?;
        }
    }

    async fn fail(
        &self,
        key: &EffectKey,
        failure: RecordedFailure,
        attempt: u32,
    ) -> Result<Outcome> {
        let record = json!(failure);
        self.settle(Point::ToolCommit, key, EffectStatus::Failed, Some(&record), attempt).await?;
        Ok(Outcome::Failed(failure.error))
    }

    /// Puts an unknown outcome to a person; `None` means: send it again.
    ///
    /// An answer that is no verdict is not held against the thread: the question is asked again.
    async fn decide(
        &self,
        request: &EffectRequest,
        key: &EffectKey,
        attempt: u32,
        reason: &str,
    ) -> Result<Option<Outcome>> {
        let mut question = OutcomeUnknown {
            idempotency_key: Some(key.to_string()),
            attempt: Some(attempt),
            ..OutcomeUnknown::of(&request.name, request.request.clone(), reason)
        };
        let mut what = key.as_bytes().to_vec();
        what.extend_from_slice(&attempt.to_le_bytes());
        loop {
            let answer = self.ask(OUTCOME_UNKNOWN, json!(question), &what).await?;
            match verdict(&answer) {
                Ok(Verdict::Retry) => return Ok(None),
                Ok(Verdict::Done { result }) => {
                    let done = EffectStatus::Done;
                    self.settle(Point::ToolCommit, key, done, Some(&result), attempt).await?;
                    return Ok(Some(Outcome::Value(result)));
                }
                Ok(Verdict::Skip) => {
                    let message =
                        "a person decided to skip this call; its outcome is unknown".to_owned();
                    let failure = RecordedFailure { error: message, is_final: true };
                    return self.fail(key, failure, attempt).await.map(Some);
                }
                Err(problem) => {
                    question.problem = Some(problem.to_string());
                    what.push(b'?');
                }
            }
        }
    }

    /// Asks a person, or returns the recorded answer to the same question.
    pub(super) async fn ask(&self, kind: &str, payload: Value, what: &[u8]) -> Result<Value> {
        let id = self.question_id(what);
        let payload = match self.found(id.0.as_bytes()) {
            Some(row @ EffectRow { outcome: Some(answer), .. }) => {
                self.count_read_back(row);
                return answer.decode().map_err(recorder);
            }
            // Asked before: the question stays as the person saw it.
            Some(asked) => asked.request.decode().map_err(recorder)?,
            None if self.mode == Mode::Replay => {
                return Err(self.diverged(kind, &format!("an answer ({kind})"), &payload));
            }
            None => {
                let row = self.row(id.0.as_bytes(), EffectKind::Interrupt, kind, &payload)?;
                self.record(Point::QuestionCommit, row).await?;
                payload
            }
        };
        let kind = kind.to_owned();
        let node = self.place.node.to_string();
        Err(NodeError::Interrupted(vec![Interrupt { id, kind, node, payload }]))
    }

    /// Returns the id of a question about `what` at this place.
    pub(super) fn question_id(&self, what: &[u8]) -> InterruptId {
        InterruptId::derive(self.place.thread, self.place.step, self.place.task, what)
    }
}

/// The effects recorded for one step before it ran (again).
#[derive(Debug, Default)]
pub struct Recorded {
    rows: HashMap<u32, HashMap<Vec<u8>, EffectRow>>,
    /// The results of a replayed step so far.
    replayed: Mutex<Replayed>,
}

#[derive(Debug, Default)]
struct Replayed {
    /// Effects that were asked for again, by task and key.
    found: HashSet<(u32, Vec<u8>)>,
    missed: BTreeMap<u32, Missed>,
}

/// The first thing a task asked for in a replay that the journal does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// The next recorded request under that name; `None` if there are no more.
    pub recorded: Option<Value>,
    /// The request of the replay.
    pub asked: Value,
}

impl Recorded {
    pub(super) fn knows(&self, task: u32) -> bool {
        self.rows.contains_key(&task)
    }

    /// Returns the effect of a task under a key.
    pub fn find(&self, task: u32, key: &[u8]) -> Option<&EffectRow> {
        self.rows.get(&task)?.get(key)
    }

    /// Returns the effect of a task under a key to a replay, which has then asked for it.
    pub(super) fn find_again(&self, task: u32, key: &[u8]) -> Option<&EffectRow> {
        let row = self.find(task, key)?;
        self.replayed.lock().found.insert((task, key.to_vec()));
        Some(row)
    }

    /// Returns the task's last recorded observation under a name.
    pub(super) fn observed(&self, task: u32, name: &str) -> Option<&EffectRow> {
        self.all_observed(task, name).max_by_key(|row| row.number)
    }

    /// Returns how often a task noted an observation under a name.
    pub(super) fn times_observed(&self, task: u32, name: &str) -> u32 {
        u32::try_from(self.all_observed(task, name).count()).unwrap_or(u32::MAX)
    }

    fn all_observed(&self, task: u32, name: &str) -> impl Iterator<Item = &EffectRow> {
        let rows = self.rows.get(&task).into_iter().flat_map(HashMap::values);
        rows.filter(move |row| row.kind == EffectKind::Observed && row.name == name)
    }

    /// Notes a request of a replay without a recorded outcome; returns whether the recorded run has a similar one.
    pub(super) fn miss(&self, task: u32, name: &str, asked: &Value) -> bool {
        let mut replayed = self.replayed.lock();
        let rows = self.rows.get(&task).into_iter().flat_map(HashMap::values);
        let is_left = |row: &&EffectRow| {
            !replayed.found.contains(&(task, row.key.clone())) && row.name == name
        };
        let next = rows.filter(is_left).min_by_key(|row| row.number);
        let recorded = next.and_then(|row| row.request.decode().ok());
        let is_alike = recorded.is_some();
        replayed.missed.entry(task).or_insert_with(|| Missed { recorded, asked: asked.clone() });
        is_alike
    }

    /// Returns the first task, in frontier order, that asked in vain in a replay, and for what.
    pub fn missed(&self) -> Option<(u32, Missed)> {
        self.replayed.lock().missed.first_key_value().map(|(task, missed)| (*task, missed.clone()))
    }

    /// Returns the first free number of a task's effects.
    pub fn next_number(&self, task: u32) -> u32 {
        let rows = self.rows.get(&task).into_iter().flat_map(HashMap::values);
        rows.map(|row| row.number.saturating_add(1)).max().unwrap_or(0)
    }
}

impl FromIterator<EffectRow> for Recorded {
    fn from_iter<I: IntoIterator<Item = EffectRow>>(rows: I) -> Self {
        let mut recorded = Self::default();
        for row in rows {
            recorded.rows.entry(row.task).or_default().insert(row.key.clone(), row);
        }
        recorded
    }
}

/// Sorts effects by their step.
pub fn by_step(rows: Vec<EffectRow>) -> BTreeMap<u64, Arc<Recorded>> {
    let mut steps: BTreeMap<u64, Vec<EffectRow>> = BTreeMap::new();
    for row in rows {
        steps.entry(row.step).or_default().push(row);
    }
    steps.into_iter().map(|(step, rows)| (step, Arc::new(rows.into_iter().collect()))).collect()
}
