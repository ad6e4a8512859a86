//! The moment at which these tests stand still, and a run that waits.

use chrono::{DateTime, Utc};
use perihelion_service_rows::{Item, Multitask, NewRun};
use serde_json::{Value, json};
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
    }
}

/// An item that was put now, and stays.
pub fn item(namespace: &[&str], key: &str, value: Value) -> Item {
    Item {
        namespace: namespace.iter().map(|name| (*name).to_owned()).collect(),
        key: key.to_owned(),
        value,
        created_at: now(),
        updated_at: now(),
        expires_at: None,
    }
}
