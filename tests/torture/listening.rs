//! Listens to the turns of one process: when each begins and ends, and the steps that it is told of, go into the logs.

use std::path::PathBuf;

use perihelion::graph::{RunEvent, Wants};
use perihelion::ids::ThreadId;
use perihelion::runner::RunOptions;
use perihelion::swarm::GraphState;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::logs::{ACKS, Ack, Log, TURNS, digest};
use super::turns::{Turn, since_start};

/// What is needed to listen to any turn of a process.
#[derive(Clone, Debug)]
pub struct Listening {
    pub directory: PathBuf,
    pub process: u64,
}

impl Listening {
    /// Begins a turn at a thread, which ends when nobody has these options any more.
    pub fn to(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> (RunOptions<GraphState>, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(64);
        let wants = Wants { updates: true, checkpoints: true, ..Wants::default() };
        let turn = Turn { process: self.process, thread, began: since_start(), ended: None };
        let turns = Log::open(&self.directory, TURNS);
        turns.note(&turn);
        let acks = Log::open(&self.directory, ACKS);
        let task = tokio::spawn(async move {
            listen(thread, acks, receiver).await;
            turns.note(&Turn { ended: Some(since_start()), ..turn });
        });
        (RunOptions { events: Some(sender), wants, ..options }, task)
    }
}

async fn listen(thread: ThreadId, log: Log, mut events: mpsc::Receiver<RunEvent<GraphState>>) {
    let mut written: Vec<(String, Value)> = Vec::new();
    while let Some(event) = events.recv().await {
        match event {
            RunEvent::Update { node, update, .. } => written.push((node, update)),
            RunEvent::Checkpoint { step, .. } => {
                let digest = digest(written.iter().map(|(node, update)| (node.as_str(), update)));
                written.clear();
                log.write(&Ack { thread, step, digest });
            }
            _ => {}
        }
    }
}
