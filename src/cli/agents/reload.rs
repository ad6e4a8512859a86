//! `perihelion agents reload`: makes running processes reload the servers file.

use std::time::Duration;

use serde_json::json;

use super::output;
use super::status::using;
use crate::cli::{Error, Exit};
use perihelion_runtime::{ReloadAnswer, Reloaded, request_reload};
use perihelion_settings::config::Settings;

/// How long a process may take: every server is started and asked for its tools.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn run(settings: &Settings, json: bool) -> Result<Exit, Error> {
    let running = using(settings);
    let asked = running.iter().map(|process| request_reload(process, PATIENCE));
    let answers = futures::future::join_all(asked).await;
    let mut exit = Exit::Done;
    let mut rows = Vec::new();
    for (process, answer) in running.iter().zip(&answers) {
        if answer.as_ref().is_none_or(|answer| answer.refused.is_some()) {
            exit = Exit::Failed;
        }
        let role = &process.role;
        let pid = process.pid;
        rows.push(json!({ "pid": pid, "role": role, "answer": answer }));
        if !json {
            say(&format!("{role} {pid}"), answer.as_ref())?;
        }
    }
    if json {
        output::json(&json!({ "processes": rows }))?;
    } else if running.is_empty() {
        let file = settings.servers.file.display();
        output::note(&format!("no process on this machine uses the servers file {file}"));
    }
    Ok(exit)
}

fn say(who: &str, answer: Option<&ReloadAnswer>) -> Result<(), Error> {
    match answer {
        None => output::warning(&format!("{who} has ended or did not respond in time")),
        Some(ReloadAnswer { refused: Some(why), .. }) => {
            output::warning(&format!("{who} did not reload and keeps its servers: {why}"));
        }
        Some(answer) => {
            output::text(&format!("{who}: {}", words(&answer.reloaded)))?;
            for problem in &answer.problems {
                output::warning(&format!("MCP server {problem}"));
            }
        }
    }
    Ok(())
}

/// Describes the result of a reload.
pub(in crate::cli) fn words(reloaded: &Reloaded) -> String {
    let kinds = [
        ("added", &reloaded.added),
        ("replaced", &reloaded.replaced),
        ("removed", &reloaded.removed),
        ("unchanged", &reloaded.kept),
    ];
    let named = kinds.iter().filter(|(_, names)| !names.is_empty());
    let words: Vec<String> =
        named.map(|(kind, names)| format!("{kind}: {}", names.join(", "))).collect();
    if words.is_empty() { "no servers".to_owned() } else { words.join("; ") }
}
