//! Items and assistants as tests put them.

use perihelion_service_rows::{Assistant, Item};
use serde_json::{Value, json};
use uuid::Uuid;

use super::support::now;

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

/// The first version of an assistant.
pub fn assistant() -> Assistant {
    Assistant {
        id: Uuid::now_v7(),
        version: 1,
        graph: "swarm".to_owned(),
        name: "one".to_owned(),
        description: None,
        config: json!({}),
        context: json!({}),
        metadata: json!({}),
        created_at: now(),
        updated_at: now(),
    }
}
