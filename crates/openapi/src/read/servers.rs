//! Base addresses of OpenAPI 3.

use serde_json::Value;

use super::text;
use crate::Server;

/// Reads a list of servers.
pub fn read(value: Option<&Value>) -> Vec<Server> {
    let list = value.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|server| {
            let url = text(server, "url");
            let variables = server.get("variables").and_then(Value::as_object);
            let variables = variables
                .into_iter()
                .flatten()
                .map(|(name, variable)| (name.clone(), text(variable, "default")));
            (!url.is_empty()).then(|| Server { url, variables: variables.collect() })
        })
        .collect()
}
