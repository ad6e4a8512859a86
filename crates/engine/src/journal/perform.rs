//! Performs effects, and records them: inquiries, which change nothing outside, and actions, which may.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::key::EffectKey;
use super::task::{Mode, TaskJournal, recorder};
use super::unknown::{OUTCOME_UNKNOWN, OutcomeUnknown, Verdict, verdict};
use crate::checkpoint::{EffectKind, EffectRow, EffectStatus};
use crate::failpoint::{Point, Side, reach, wrap};
use crate::graph::{EffectFailure, EffectRequest, Interrupt, NodeError, Outcome, Perform, Result};
use crate::ids::InterruptId;
use crate::observer::report;

/// How often a repeatable action is sent in one attempt at its node while its outcome stays unknown.
pub const REPEATS: u32 = 3;

/// Maximum number of effects in one statement, because both databases limit the values of a statement.
const MOST: usize = 1024;

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
    /// If an answer is no verdict, the question is asked again.
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

    pub(super) fn question_id(&self, what: &[u8]) -> InterruptId {
        InterruptId::derive(self.place.thread, self.place.step, self.place.task, what)
    }

    /// Leaves a row to the task's next write, because until then no visible effect depends on it.
    pub(super) async fn note(&self, row: EffectRow) {
        self.notes.lock().await.push(row);
    }

    /// Records an effect, and the earlier notes before it or in the same write.
    ///
    /// The notes are dropped only after the write: a node can give it up and continue.
    pub(super) async fn record(&self, point: Point, row: EffectRow) -> Result<()> {
        let mut notes = self.notes.lock().await;
        if notes.is_empty() {
            // Concurrent effects do not wait for each other.
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
        for together in rows.chunks(MOST) {
            let recorded = self.store.record_effects(self.claimed.fence, together);
            wrap(point, recorded).await.map_err(recorder)?;
        }
        for row in rows {
            report(|observer| observer.effect_recorded(row.kind.as_str()));
            if row.kind == EffectKind::Interrupt {
                report(|observer| observer.interrupted(&row.name));
            }
        }
        Ok(())
    }
}
