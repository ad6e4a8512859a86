//! A process that holds a thread and commits steps to it.

use perihelion_engine::checkpoint::Claim;
use std::{sync::Arc, time::Duration};

use perihelion_engine::{
    checkpoint::{
        Codec, Commit, EffectKind, EffectRow, EffectStatus, Encoded, Error, NewThread, PendingRow,
        SnapshotRow, StepKind, StepRow, Store, ThreadStatus, chain_hash,
    },
    ids::{InterruptId, RunId, ThreadId},
};
use serde_json::json;

pub const TTL: Duration = Duration::from_secs(60);

pub fn new_thread() -> NewThread {
    NewThread {
        id: ThreadId::new(),
        graph: "swarm".to_owned(),
        title: None,
        root: None,
        namespace: String::new(),
        tenant: "default".to_owned(),
    }
}

pub fn encoded(value: &serde_json::Value) -> Encoded {
    Encoded::json(value, usize::MAX).unwrap()
}

pub struct Writer {
    pub store: Arc<dyn Store>,
    pub thread: ThreadId,
    pub fence: u64,
    pub run: RunId,
    pub head: u64,
    pub hash: [u8; 32],
}

impl Writer {
    /// Makes a thread and claims it.
    pub async fn new(store: &Arc<dyn Store>) -> Self {
        let thread = store.create(new_thread()).await.unwrap().id;
        Self::claim(store, thread).await
    }

    /// Makes a thread with `count` steps and claims it.
    pub async fn with_steps(store: &Arc<dyn Store>, count: u64) -> Self {
        let mut writer = Self::new(store).await;
        writer.steps(count).await;
        writer
    }

    /// Claims a thread as a process does that continues it.
    pub async fn claim(store: &Arc<dyn Store>, thread: ThreadId) -> Self {
        let info = store.claim(Claim::new(thread, "tester", TTL).forced()).await.unwrap();
        let newest = store.history(thread, None, 1).await.unwrap();
        Self {
            store: Arc::clone(store),
            thread,
            fence: info.fence,
            run: RunId::new(),
            head: info.head,
            hash: newest.first().map_or([0; 32], |step| step.hash),
        }
    }

    /// Prepares the next step without committing it.
    pub fn next(&self, delta: Encoded) -> Commit {
        let seq = self.head + 1;
        let frontier = json!([{"node": "supervisor", "at": seq}]).to_string().into_bytes();
        let hash = chain_hash(&self.hash, seq, &delta.to_json_bytes().unwrap(), &frontier);
        Commit {
            thread: self.thread,
            fence: self.fence,
            step: StepRow {
                seq,
                kind: StepKind::Loop,
                run: self.run,
                schema_version: 1,
                delta,
                frontier,
                hash,
                at: chrono::DateTime::UNIX_EPOCH,
            },
            status: ThreadStatus::Busy,
            clears_pending: false,
            blobs: Vec::new(),
        }
    }

    pub async fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        self.store.commit(commit).await?;
        self.head = commit.step.seq;
        self.hash = commit.step.hash;
        Ok(())
    }

    pub async fn steps(&mut self, count: u64) {
        for _ in 0..count {
            let delta = encoded(&json!([{"node": "supervisor", "wrote": self.head + 1}]));
            let commit = self.next(delta);
            self.commit(&commit).await.unwrap();
        }
    }

    pub fn snapshot(&self, seq: u64) -> SnapshotRow {
        let state = encoded(&json!({"state at": seq}));
        SnapshotRow { seq, schema_version: 1, state, blobs: None }
    }

    pub fn pending(&self, task: u32) -> PendingRow {
        PendingRow { step: self.head + 1, task, body: encoded(&json!({"of task": task})) }
    }

    pub fn tool_call(&self, number: u32) -> EffectRow {
        EffectRow {
            step: self.head + 1,
            task: 0,
            key: vec![number as u8; 32],
            number,
            kind: EffectKind::Tool,
            status: EffectStatus::Started,
            name: "files.write".to_owned(),
            request: encoded(&json!({"path": "a.txt", "call": number})),
            outcome: None,
            attempt: 1,
            started_at: chrono::DateTime::from_timestamp_micros(1_750_000_000_123_456).unwrap(),
            ended_at: None,
        }
    }

    pub fn question(&self, number: u32) -> (InterruptId, EffectRow) {
        let id = InterruptId::derive(self.thread, self.head + 1, 0, &number.to_le_bytes());
        let row = EffectRow {
            key: id.0.as_bytes().to_vec(),
            kind: EffectKind::Interrupt,
            name: "clarification".to_owned(),
            request: encoded(&json!({"question": "which year?"})),
            ..self.tool_call(number)
        };
        (id, row)
    }
}

/// A JSON text with this many characters of prose.
pub fn prose(length: usize) -> Encoded {
    let mut text = String::with_capacity(length + 2);
    text.push('"');
    text.extend("The agent looked at the orders of May. ".chars().cycle().take(length));
    text.push('"');
    Encoded { codec: Codec::Json, bytes: text.into_bytes() }
}

impl Writer {
    /// Acts for a holder of a token, at a head it has read.
    pub fn claimed(store: &Arc<dyn Store>, thread: ThreadId, fence: u64, head: u64) -> Self {
        let store = Arc::clone(store);
        Self { store, thread, fence, run: RunId::new(), head, hash: [0; 32] }
    }
}
