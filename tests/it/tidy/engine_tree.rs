//! What a user of the engine alone builds: no MCP, HTTP server, model client or telemetry.

use std::collections::{BTreeMap, BTreeSet};

use super::{read, report};

/// Parts of the program that no tree of the engine's has, with their families.
const FOREIGN: [&str; 11] = [
    "axum",
    "cranelift-codegen",
    "h2",
    "hyper",
    "jsonschema",
    "opentelemetry",
    "reqwest",
    "rmcp",
    "tonic",
    "tungstenite",
    "wasmtime",
];

#[test]
fn the_engine_brings_no_mcp_http_server_model_client_or_telemetry() {
    let lock: toml::Table = toml::from_str(&read("Cargo.lock")).unwrap();
    let mut needs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock["package"].as_array().unwrap() {
        let names = package.get("dependencies").and_then(toml::Value::as_array);
        let names = names.into_iter().flatten().filter_map(toml::Value::as_str);
        let names = names.filter_map(|name| name.split(' ').next());
        needs.entry(package["name"].as_str().unwrap()).or_default().extend(names);
    }
    let mut tree = BTreeSet::new();
    let mut next = vec!["perihelion-engine"];
    while let Some(name) = next.pop() {
        if tree.insert(name) {
            next.extend(needs.get(name).into_iter().flatten());
        }
    }
    assert!(tree.contains("sqlx"), "the lock file was read: {tree:?}");
    let is_foreign = |name: &&&str| {
        FOREIGN.iter().any(|part| *name == part || name.starts_with(&format!("{part}-")))
    };
    let foreign: Vec<String> = tree.iter().filter(is_foreign).map(ToString::to_string).collect();
    report(
        &foreign,
        "crates/engine must not need these: see docs/decisions/the-engine-is-a-separate-crate.md",
    );
}
