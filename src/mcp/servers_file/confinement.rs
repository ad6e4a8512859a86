//! Where a server comes from, as written, and what it may see of this machine.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{
    Secrets,
    expand::{Environment, expand},
    resolve::Place,
    table::Table,
};
use crate::config::Error;
use crate::mcp::{pins::digest, sandbox::Sandbox};

/// Hashes what starts or reaches the server, as it is written: the same on every machine, and without secrets'
/// values.
pub(super) fn origin(table: &Table) -> String {
    digest(&json!({ "command": table.command, "args": table.args, "url": table.url }))
}

/// Expands and checks the paths of a sandbox; relative ones start where the server would.
pub(super) fn sandbox(
    place: &Place<'_>,
    table: &Table,
    env: Environment<'_>,
) -> Result<Option<Sandbox>, Error> {
    let Some(sandbox) = table.sandbox.as_ref().filter(|_| table.is_enabled()) else {
        return Ok(None);
    };
    let paths = |key: &str, written: &[String]| {
        let path = |text: &String| {
            // Where a path leads is no secret, though it came from the environment.
            let expanded = expand(text, env, &mut Secrets::default());
            expanded.and_then(|text| absolute(&text, table.cwd.as_deref()))
        };
        written
            .iter()
            .map(path)
            .collect::<Result<Vec<PathBuf>, String>>()
            .map_err(|message| place.error(&format!("sandbox.{key}"), message))
    };
    Ok(Some(Sandbox {
        read_only: paths("read_only", &sandbox.read_only)?,
        writable: paths("writable", &sandbox.writable)?,
        network: sandbox.network,
    }))
}

fn absolute(text: &str, cwd: Option<&str>) -> Result<PathBuf, String> {
    if text.trim().is_empty() {
        return Err("a path is empty".to_owned());
    }
    let path = Path::new(cwd.unwrap_or_default()).join(text);
    std::path::absolute(&path).map_err(|error| format!("not a usable path: {error}: {text}"))
}
