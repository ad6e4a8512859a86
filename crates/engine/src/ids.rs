//! Typed IDs: a thread ID cannot be passed as a run ID.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::{NoContext, Timestamp, Uuid};

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// Names a thread: a conversation that lives for days. Not one execution of it, which is a [`RunId`].
    ThreadId
}
uuid_id! {
    /// Names one run: from an input to its answer, its interrupt or its failure. A thread has many.
    RunId
}
uuid_id! {
    /// Names one open question to a person. Derived from its place, so that a re-run asks the same one.
    InterruptId
}

/// Namespace under which thread names become ids (UUIDv5).
const THREAD_NAMES: Uuid = Uuid::from_u128(0x5e0c_93f1_7d2b_4a52_9b60_2f8e_7a11_c3d4);

impl ThreadId {
    /// Makes a fresh id, ordered by time.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Reads a UUID as itself and maps any other name to one by UUIDv5.
    ///
    /// Also returns the name, if there was one, to store it as the thread's title.
    pub fn from_name(name: &str) -> (Self, Option<&str>) {
        match Uuid::parse_str(name) {
            Ok(id) => (Self(id), None),
            Err(_) => (Self(Uuid::new_v5(&THREAD_NAMES, name.as_bytes())), Some(name)),
        }
    }

    /// Reads a UUID, or maps any other name to an ID that belongs to the tenant.
    ///
    /// Also returns the name, if there was one, to store it as the thread's title.
    pub fn from_name_of<'a>(tenant: &str, name: &'a str) -> (Self, Option<&'a str>) {
        match Uuid::parse_str(name) {
            Ok(id) => (Self(id), None),
            Err(_) => (Self::from_name(&format!("{tenant}\u{1f}{name}")).0, Some(name)),
        }
    }

    /// Derives the id of a subgraph's thread from its place in this one.
    pub fn child(self, namespace: &str) -> Self {
        Self(Uuid::new_v5(&self.0, namespace.as_bytes()))
    }
}

impl Default for ThreadId {
    fn default() -> Self {
        Self::new()
    }
}

impl RunId {
    /// Makes a fresh id, ordered by time.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Makes a fresh id of a run that begins at a time.
    pub fn begun_at(time: DateTime<Utc>) -> Self {
        let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
        let nanos = time.timestamp_subsec_nanos();
        Self(Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos)))
    }

    /// Returns when the run began, in microseconds since the Unix epoch; the id carries it to the millisecond.
    pub fn started_micros(self) -> i64 {
        let (seconds, nanos) = self.0.get_timestamp().map_or((0, 0), |time| time.to_unix());
        i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000)
            + i64::from(nanos / 1_000)
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl InterruptId {
    /// Derives the ID from the place and the subject of the question, so that a node that runs again asks the same
    /// question.
    pub fn derive(thread: ThreadId, step: u64, task: u32, what: &[u8]) -> Self {
        let mut name = format!("interrupt/{step}/{task}/").into_bytes();
        name.extend_from_slice(what);
        Self(Uuid::new_v5(&thread.0, &name))
    }
}
