//! Items as tests put them.

use perihelion_service_rows::Item;
use serde_json::Value;

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
