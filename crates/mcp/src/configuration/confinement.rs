//! The origin of a server, as written, and its view of this machine.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::expand::{EntryLocation, Environment, expand};
use super::table::{SandboxTable, Table};
use super::{Secrets, Transport};
use crate::types::digest;
use perihelion_settings::config::Error;

/// Less than this starts no program; more than this is a mistake of unit.
const MEMORY_MB: std::ops::RangeInclusive<u64> = 8..=1_048_576;

/// The origin of a server, with each part hashed as written: the same on every machine, and without values of secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Of command and arguments, or of the address.
    pub source: String,
    /// Of directory, environment, the names of headers and of variables with tokens, and the sandbox.
    pub setting: String,
    /// The same as written, so that a change can be shown; values of the environment only as references.
    pub written: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Absolute paths that it may read.
    pub read_only: Vec<PathBuf>,
    /// Absolute paths that it may read and write.
    pub writable: Vec<PathBuf>,
    /// The network of this machine; otherwise there is no network, not even loopback to other processes.
    pub network: bool,
    /// Maximum bytes of its scratch directory, which is in memory; half of the machine's memory by default.
    pub scratch_bytes: Option<u64>,
}

impl Origin {
    pub(super) fn of(table: &Table) -> Self {
        let source = json!({ "command": table.command, "args": table.args, "url": table.url });
        let headers: Vec<&String> = table.http_headers.keys().collect();
        let sandbox = table.sandbox.as_ref().map(|sandbox| {
            let SandboxTable { read_only, writable, network } = sandbox;
            json!({ "read_only": read_only, "writable": writable, "network": network })
        });
        let mut setting = json!({
            "cwd": table.cwd, "env": table.env, "env_vars": table.env_vars,
            "http_headers": headers, "env_http_headers": table.env_http_headers,
            "bearer_token_env_var": table.bearer_token_env_var, "sandbox": sandbox,
        });
        // A key that comes later and is not written must change no hash.
        drop_empty(&mut setting);
        let mut shown = json!({ "source": source, "setting": setting });
        if let Some(Value::Object(env)) = shown.pointer_mut("/setting/env") {
            env.values_mut().for_each(veil);
        }
        drop_empty(&mut shown["source"]);
        Self { source: digest(&source), setting: digest(&setting), written: shown }
    }
}

fn drop_empty(value: &mut Value) {
    if let Value::Object(parts) = value {
        parts.retain(|_, part| match part {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        });
    }
}

/// Removes a variable's value except a part that shows changes, if it can be a secret in plain text.
fn veil(value: &mut Value) {
    let text = value.as_str().unwrap_or_default();
    if !text.contains("${") {
        let digest = digest(&json!(text));
        *value = json!(format!("(sha256 {})", digest.get(..8).unwrap_or_default()));
    }
}

/// Expands and checks the paths of a sandbox; relative ones start in the server's directory.
pub(super) fn sandbox(
    place: &EntryLocation<'_>,
    table: &Table,
    env: Environment<'_>,
    transport: &Transport,
) -> Result<Option<Sandbox>, Error> {
    let Some(sandbox) = table.sandbox.as_ref().filter(|_| table.is_enabled()) else {
        return Ok(None);
    };
    let paths = |key: &str, written: &[String]| {
        let path = |text: &String| {
            let key = format!("sandbox.{key}");
            // Where a path leads is no secret, though it came from the environment.
            let text = place.at(&key, expand(text, env, &mut Secrets::default()))?;
            if text.trim().is_empty() {
                return Err(place.error(&key, "a path is empty"));
            }
            let directory = match transport {
                Transport::Stdio { cwd: Some(cwd), .. } => Path::new(cwd),
                _ => Path::new(""),
            };
            place.at(&key, std::path::absolute(directory.join(text)))
        };
        written.iter().map(path).collect::<Result<Vec<PathBuf>, Error>>()
    };
    Ok(Some(Sandbox {
        read_only: paths("read_only", &sandbox.read_only)?,
        writable: paths("writable", &sandbox.writable)?,
        network: sandbox.network,
        scratch_bytes: table.memory_mb.map(|megabytes| megabytes << 20),
    }))
}

pub(super) fn memory(place: &EntryLocation<'_>, table: &Table) -> Result<Option<u64>, Error> {
    match table.memory_mb {
        Some(_) if table.command.is_none() => {
            Err(place.error("memory_mb", "only a server with a command is started here"))
        }
        Some(megabytes) if !(MEMORY_MB.contains(&megabytes)) => {
            let least = MEMORY_MB.start();
            let most = MEMORY_MB.end();
            Err(place.error("memory_mb", format!("give {least} to {most} megabytes")))
        }
        given => Ok(given),
    }
}
