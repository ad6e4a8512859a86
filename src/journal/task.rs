//! The journal of one running task.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::key::EffectKey;
use super::unknown::{OUTCOME_UNKNOWN, Verdict, question};
use crate::checkpoint::{EffectKind, EffectRow, EffectSettlement, EffectStatus, Encoded, Store};
use crate::clock;
use crate::graph::{
    EffectClass, EffectFailure, EffectRequest, Interrupt, NodeError, Outcome, Perform, Place, Port,
    StreamMode,
};
use crate::ids::InterruptId;

/// Effects of a step that were recorded before, by task and key.
pub type Recorded = HashMap<(u32, Vec<u8>), EffectRow>;

/// Publishes a live event of a task.
pub type Publish = Arc<dyn Fn(StreamMode, Value) + Send + Sync>;

/// How often a repeatable action is sent in all when its outcome stays unknown.
const REPEATS: u32 = 3;

/// Whether effects may be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What is not recorded is performed and recorded.
    Live,
    /// Only what is recorded; anything else is a divergence.
    Replay,
}

/// Records and recovers the effects of one task of one step.
pub struct TaskJournal {
    store: Arc<dyn Store>,
    fence: u64,
    place: Place,
    mode: Mode,
    recorded: Arc<Recorded>,
    occurrences: Mutex<HashMap<EffectKey, u32>>,
    next_number: AtomicU32,
    cancel: CancellationToken,
    publish: Option<Publish>,
}

impl std::fmt::Debug for TaskJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskJournal").field("place", &self.place).finish_non_exhaustive()
    }
}

impl TaskJournal {
    /// Makes the journal of a task; `recorded` holds what earlier attempts of the step left.
    pub fn new(
        store: Arc<dyn Store>,
        fence: u64,
        place: Place,
        mode: Mode,
        recorded: Arc<Recorded>,
        cancel: CancellationToken,
        publish: Option<Publish>,
    ) -> Self {
        let mine = recorded.values().filter(|row| row.task == place.task);
        let next_number = mine.map(|row| row.number + 1).max().unwrap_or(0);
        Self {
            store,
            fence,
            place,
            mode,
            recorded,
            occurrences: Mutex::new(HashMap::new()),
            next_number: AtomicU32::new(next_number),
            cancel,
            publish,
        }
    }

    fn key(&self, name: &str, request: &Value) -> EffectKey {
        let base = EffectKey::derive(&self.place, name, request, 0);
        let mut seen = self.occurrences.lock().unwrap_or_else(PoisonError::into_inner);
        let occurrence = seen.entry(base).or_insert(0);
        let key = match *occurrence {
            0 => base,
            more => EffectKey::derive(&self.place, name, request, more),
        };
        *occurrence += 1;
        key
    }

    fn found(&self, key: &[u8]) -> Option<&EffectRow> {
        self.recorded.get(&(self.place.task, key.to_vec()))
    }

    fn row(&self, key: &[u8], kind: EffectKind, name: &str, request: Encoded) -> EffectRow {
        let now = clock::now();
        EffectRow {
            step: self.place.step,
            task: self.place.task,
            key: key.to_vec(),
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
            kind,
            status: EffectStatus::Started,
            name: name.to_owned(),
            request,
            outcome: None,
            attempt: 1,
            started_at: now,
            ended_at: None,
        }
    }

    async fn record(&self, row: &EffectRow) -> Result<(), NodeError> {
        self.store.record_effect(self.place.thread, self.fence, row).await.map_err(recorder)
    }

    async fn settle(
        &self,
        key: &EffectKey,
        status: EffectStatus,
        outcome: Option<&Value>,
        attempt: u32,
    ) -> Result<(), NodeError> {
        let outcome = outcome.map(|value| self.encode(value)).transpose()?;
        let (step, task) = (self.place.step, self.place.task);
        let end =
            EffectSettlement { step, task, key: key.as_bytes().to_vec(), status, outcome, attempt };
        self.store.settle_effect(self.place.thread, self.fence, &end).await.map_err(recorder)
    }

    fn encode(&self, value: &Value) -> Result<Encoded, NodeError> {
        Encoded::json(value, self.store.compress_above()).map_err(recorder)
    }

    fn diverged(&self, what: &str) -> NodeError {
        NodeError::failed(
            "divergence",
            format!(
                "the node {} asked for {what}, which the recorded run did not",
                self.place.node
            ),
        )
    }

    /// Performs something that changes nothing and records how it ended.
    async fn inquire(
        &self,
        request: &EffectRequest,
        key: EffectKey,
        before: Option<u32>,
        mut perform: Perform<'_>,
    ) -> Result<Outcome, NodeError> {
        let mut row = self.row(
            key.as_bytes(),
            EffectKind::Model,
            &request.name,
            self.encode(&request.request)?,
        );
        let result = tokio::select! {
            result = perform(key.to_string()) => result,
            () = self.cancel.cancelled() => return Err(NodeError::Cancelled),
        };
        let (status, value, outcome) = match result {
            Ok(value) => (EffectStatus::Done, value.clone(), Outcome::Value(value)),
            Err(failure) => {
                let message = failure.to_string();
                (EffectStatus::Failed, json!({ "error": message }), Outcome::Failed(message))
            }
        };
        match before {
            Some(attempt) => self.settle(&key, status, Some(&value), attempt + 1).await?,
            None => {
                row.status = status;
                row.outcome = Some(self.encode(&value)?);
                row.ended_at = Some(clock::now());
                self.record(&row).await?;
            }
        }
        Ok(outcome)
    }

    /// Sends an action whose intent is durable, and records how it ended.
    async fn act(
        &self,
        request: &EffectRequest,
        repeatable: bool,
        key: EffectKey,
        mut attempt: u32,
        mut perform: Perform<'_>,
    ) -> Result<Outcome, NodeError> {
        loop {
            match perform(key.to_string()).await {
                Ok(value) => {
                    self.settle(&key, EffectStatus::Done, Some(&value), attempt).await?;
                    return Ok(Outcome::Value(value));
                }
                Err(EffectFailure::NoEffect(message)) => {
                    return self.give_up(&key, message, attempt).await;
                }
                Err(EffectFailure::Unknown(message)) if repeatable => {
                    if attempt >= REPEATS || self.cancel.is_cancelled() {
                        return self.give_up(&key, message, attempt).await;
                    }
                }
                Err(EffectFailure::Unknown(message)) => {
                    if let Some(outcome) = self.ask(request, &key, attempt, &message).await? {
                        return Ok(outcome);
                    }
                }
            }
            attempt += 1;
            self.settle(&key, EffectStatus::Started, None, attempt).await?;
        }
    }

    async fn give_up(
        &self,
        key: &EffectKey,
        message: String,
        attempt: u32,
    ) -> Result<Outcome, NodeError> {
        self.settle(key, EffectStatus::Failed, Some(&json!({ "error": message })), attempt).await?;
        Ok(Outcome::Failed(message))
    }

    /// Puts an unknown outcome to a person; `None` means: send it again.
    async fn ask(
        &self,
        request: &EffectRequest,
        key: &EffectKey,
        attempt: u32,
        reason: &str,
    ) -> Result<Option<Outcome>, NodeError> {
        let payload = question(&request.name, &request.request, &key.to_string(), attempt, reason);
        let mut what = key.as_bytes().to_vec();
        what.extend_from_slice(&attempt.to_le_bytes());
        let answer = self.question(OUTCOME_UNKNOWN, payload, &what).await?;
        let verdict: Verdict = serde_json::from_value(answer).map_err(|error| {
            NodeError::failed("answer", format!("the answer must be done, retry or skip: {error}"))
        })?;
        match verdict {
            Verdict::Retry => Ok(None),
            Verdict::Done { result } => {
                self.settle(key, EffectStatus::Done, Some(&result), attempt).await?;
                Ok(Some(Outcome::Value(result)))
            }
            Verdict::Skip => {
                let message =
                    "a person decided to skip this call; its outcome is unknown".to_owned();
                self.give_up(key, message, attempt).await.map(Some)
            }
        }
    }

    async fn question(&self, kind: &str, payload: Value, what: &[u8]) -> Result<Value, NodeError> {
        let id = InterruptId::derive(self.place.thread, self.place.step, self.place.task, what);
        match self.found(id.0.as_bytes()) {
            Some(EffectRow { outcome: Some(answer), .. }) => {
                return answer.decode().map_err(recorder);
            }
            Some(_) => {}
            None if self.mode == Mode::Replay => {
                return Err(self.diverged(&format!("an answer ({kind})")));
            }
            None => {
                let row =
                    self.row(id.0.as_bytes(), EffectKind::Interrupt, kind, self.encode(&payload)?);
                self.record(&row).await?;
            }
        }
        let node = self.place.node.to_string();
        Err(NodeError::Interrupted(vec![Interrupt { id, kind: kind.to_owned(), node, payload }]))
    }

    /// Takes a drawn value, or the one recorded for the same draw.
    async fn draw(
        &self,
        kind: EffectKind,
        draw: impl FnOnce() -> Value,
    ) -> Result<Value, NodeError> {
        let key = self.key(kind.as_str(), &Value::Null);
        if let Some(EffectRow { outcome: Some(value), .. }) = self.found(key.as_bytes()) {
            return value.decode().map_err(recorder);
        }
        if self.mode == Mode::Replay {
            return Err(self.diverged(kind.as_str()));
        }
        let value = draw();
        let mut row = self.row(key.as_bytes(), kind, kind.as_str(), self.encode(&Value::Null)?);
        row.status = EffectStatus::Done;
        row.outcome = Some(self.encode(&value)?);
        row.ended_at = Some(row.started_at);
        self.record(&row).await?;
        Ok(value)
    }
}

fn random_bits() -> u64 {
    let hash = blake3::hash(uuid::Uuid::new_v4().as_bytes());
    let (bits, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    u64::from_le_bytes(*bits)
}

fn recorder(error: crate::checkpoint::Error) -> NodeError {
    NodeError::Recorder(Box::new(error))
}

#[async_trait]
impl Port for TaskJournal {
    async fn effect(
        &self,
        request: EffectRequest,
        perform: Perform<'_>,
    ) -> Result<Outcome, NodeError> {
        let key = self.key(&request.name, &request.request);
        let found = self.found(key.as_bytes());
        if let Some(EffectRow { status: EffectStatus::Done, outcome: Some(value), .. }) = found {
            return value.decode().map(Outcome::Value).map_err(recorder);
        }
        if self.mode == Mode::Replay {
            return match found {
                Some(EffectRow { status: EffectStatus::Failed, outcome: Some(value), .. }) => {
                    let value: Value = value.decode().map_err(recorder)?;
                    Ok(Outcome::Failed(value["error"].as_str().unwrap_or_default().to_owned()))
                }
                _ => Err(self.diverged(&request.name)),
            };
        }
        if self.cancel.is_cancelled() {
            return Err(NodeError::Cancelled);
        }
        let EffectClass::Action { repeatable } = request.class else {
            return self.inquire(&request, key, found.map(|row| row.attempt), perform).await;
        };
        let attempt = match found {
            None => {
                let row = self.row(
                    key.as_bytes(),
                    EffectKind::Tool,
                    &request.name,
                    self.encode(&request.request)?,
                );
                self.record(&row).await?;
                1
            }
            Some(row) if row.status == EffectStatus::Failed || repeatable => row.attempt + 1,
            Some(row) => {
                let reason = "the process ended between sending the call and recording its outcome";
                match self.ask(&request, &key, row.attempt, reason).await? {
                    Some(outcome) => return Ok(outcome),
                    None => row.attempt + 1,
                }
            }
        };
        if attempt > 1 {
            self.settle(&key, EffectStatus::Started, None, attempt).await?;
        }
        self.act(&request, repeatable, key, attempt, perform).await
    }

    async fn interrupt(&self, kind: &str, payload: Value) -> Result<Value, NodeError> {
        let what = self.key(kind, &payload);
        self.question(kind, payload, what.as_bytes()).await
    }

    async fn now_micros(&self) -> Result<i64, NodeError> {
        let value = self.draw(EffectKind::Clock, || json!(clock::now().timestamp_micros())).await?;
        Ok(value.as_i64().unwrap_or_default())
    }

    async fn random(&self) -> Result<u64, NodeError> {
        let value = self.draw(EffectKind::Random, || json!(random_bits())).await?;
        Ok(value.as_u64().unwrap_or_default())
    }

    fn emit(&self, mode: StreamMode, payload: Value) {
        if let Some(publish) = &self.publish {
            publish(mode, payload);
        }
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    async fn until_cancelled(&self) {
        self.cancel.cancelled().await;
    }
}
