//! The moment at which these tests stand still, and a run that waits.

use chrono::{DateTime, Utc};
use perihelion_service_rows::{Multitask, NewRun};
use serde_json::json;
use uuid::Uuid;

pub fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

pub fn run(thread: Uuid) -> NewRun {
    NewRun {
        id: Uuid::now_v7(),
        thread,
        assistant: Uuid::nil(),
        multitask: Multitask::Enqueue,
        kwargs: json!({}),
        metadata: json!({}),
        temporary: false,
        due_at: now(),
        only_at: None,
    }
}
