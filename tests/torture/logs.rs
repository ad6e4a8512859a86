//! The oracle's memory: append-only files beside the database, each line on disk before anybody continues.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use perihelion::ids::ThreadId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A job is given to the program, perhaps: written before it is.
pub const ASKS: &str = "asks.log";
/// A listener was told that a step is committed.
pub const ACKS: &str = "acks.log";
/// A tool did something: written by the receiver before it answers.
pub const EFFECTS: &str = "effects.log";
/// A question was put to a person, who is about to answer it so.
pub const QUESTIONS: &str = "questions.log";
/// An answer was accepted.
pub const ACCEPTED: &str = "accepted.log";
/// The model was asked: written by the model's endpoint before it answers.
pub const MODELS: &str = "models.log";
/// A process begins or ends a turn at a thread.
pub const TURNS: &str = "turns.log";
/// One byte per point reached: twice the point's number, plus one after it.
pub const POINTS: &str = "points.log";

/// One log, open for appending; several processes may have it open.
#[derive(Debug)]
pub struct Log(File);

impl Log {
    pub fn open(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    /// Appends a line and waits until it is on disk; one write, so that a kill leaves all of it or nothing.
    pub fn write(&self, line: &impl Serialize) {
        let mut text = serde_json::to_vec(line).unwrap();
        text.push(b'\n');
        (&self.0).write_all(&text).unwrap();
        self.0.sync_data().unwrap();
    }

    /// Appends a line, which outlives every process but need not outlive the machine.
    pub fn note(&self, line: &impl Serialize) {
        let mut text = serde_json::to_vec(line).unwrap();
        text.push(b'\n');
        (&self.0).write_all(&text).unwrap();
    }

    /// Appends a byte, which outlives this process but need not outlive the machine.
    pub fn tally(&self, byte: u8) {
        (&self.0).write_all(&[byte]).unwrap();
    }
}

/// Reads all lines of a log.
pub fn lines<T: DeserializeOwned>(directory: &Path, name: &str) -> Vec<T> {
    let text = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[derive(Debug, Serialize, serde::Deserialize)]
pub struct Ack {
    pub thread: ThreadId,
    pub step: u64,
    pub digest: String,
}

#[derive(Debug, Serialize, serde::Deserialize)]
pub struct Effect {
    /// The process that sent the call.
    pub process: u64,
    /// When it arrived, see [`since_start`](super::turns::since_start).
    pub at: u64,
    pub tool: String,
    pub line: String,
    pub key: String,
    /// Whether the receiver knew the key and did nothing.
    pub refused: bool,
    /// Whether the answer was lost on its way.
    pub lost: bool,
}

#[derive(Debug, Serialize, serde::Deserialize)]
pub struct Accepted {
    pub interrupt: String,
    pub verdict: String,
}

#[derive(Debug, Serialize, serde::Deserialize)]
pub struct ModelCall {
    /// The process that asked.
    pub process: u64,
    /// When it arrived, see [`since_start`](super::turns::since_start).
    pub at: u64,
    pub thread: String,
    pub role: String,
    /// Hash of the request.
    pub request: String,
    /// Hash of its messages, which a recorded request has as well.
    pub messages: String,
}

#[derive(Debug, Serialize, serde::Deserialize)]
pub struct Question {
    pub interrupt: String,
    pub line: String,
    pub verdict: String,
}

/// Hashes what the tasks of a step wrote, in their order but without that of an object's fields.
pub fn digest<'a>(written: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (node, update) in written {
        hasher.update(node.as_bytes());
        hasher.update(sorted(update).to_string().as_bytes());
    }
    hasher.finalize().to_hex()[..24].to_owned()
}

pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            names.into_iter().map(|name| (name.clone(), sorted(&fields[name]))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        plain => plain.clone(),
    }
}
