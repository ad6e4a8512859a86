//! `perihelion agents approve`, `import` and `reload`: the servers behind the agents.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::output;
use super::show::{short_name, using};
use crate::cli::escape::shown;
use crate::cli::files::{read, replace};
use crate::cli::{Exit, Result};
use perihelion_runtime::{
    self as runtime, ImportFormat, Imported, ReloadAnswer, Reloaded, Review, import_servers,
    request_reload,
};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArgs {
    /// Agent name, with or without its prefix
    name: String,
    /// Show the differences without accepting them
    #[arg(long)]
    dry_run: bool,
}

impl ApproveArgs {
    pub fn server(&self) -> &str {
        short_name(&self.name)
    }
}

/// Shows the differences and, unless they were only to be shown, accepts them.
pub(super) fn approve(found: Review, args: &ApproveArgs, json: bool) -> Result<()> {
    let nothing = found.nothing();
    let path = found.path().display().to_string();
    let server = found.server.clone();
    let headings = found.headings.clone();
    let text = found.text.clone();
    let accepted = nothing.is_none() && !args.dry_run;
    if accepted {
        found.accept()?;
    }
    if json {
        return output::json(&json!({
            "server": server, "changes": headings, "text": text, "accepted": accepted,
        }));
    }
    if !text.is_empty() {
        output::text(&shown(&text))?;
    }
    output::note(&match nothing {
        Some(why) => format!("MCP server {server}: {why}"),
        None if args.dry_run => format!(
            "no changes were accepted. To accept them, run: perihelion agents approve {server}"
        ),
        None => format!("MCP server {server} is pinned as shown; the pin is in {path}"),
    });
    Ok(())
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --write, the tables are printed and no file is changed. To follow later changes of the other file, \
add  import = [\".mcp.json\"]  at the top of the servers file instead.

Examples:
  perihelion agents import .mcp.json
  perihelion agents import .vscode/mcp.json --write
  perihelion agents import ~/.codex/config.toml --format codex --write")]
pub(super) struct ImportArgs {
    /// Configuration file: .mcp.json of Claude, mcp.json of VS Code, or config.toml of Codex
    file: PathBuf,
    /// Format of the file. Detected by default
    #[arg(long)]
    format: Option<Form>,
    /// Add the tables to the servers file
    #[arg(long)]
    write: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    Claude,
    Vscode,
    Codex,
}

pub(super) fn import(settings: &Settings, args: &ImportArgs) -> Result<()> {
    let format = args.format.map(|form| match form {
        Form::Claude => ImportFormat::Claude,
        Form::Vscode => ImportFormat::VsCode,
        Form::Codex => ImportFormat::Codex,
    });
    let target = &settings.servers.file;
    let text = if target.exists() { read(target)? } else { String::new() };
    let from = read(&args.file)?;
    let imported = import_servers((target, &text), (&args.file, &from), format)
        .map_err(runtime::Error::from)?;
    if args.write {
        // A link stays one: its target is replaced.
        let place = target.canonicalize().unwrap_or_else(|_| target.clone());
        let permissions = std::fs::metadata(&place).map(|data| data.permissions());
        replace(&place, imported.file.as_bytes())?;
        if let Ok(permissions) = permissions {
            let _ = std::fs::set_permissions(&place, permissions);
        }
        let servers = imported.servers.join(", ");
        output::note(&format!("added to {}: {servers}", target.display()));
    } else {
        output::text(&imported.tables)?;
    }
    tell(&imported);
    Ok(())
}

fn tell(imported: &Imported) {
    for (server, note) in &imported.notes {
        output::warning(&format!("MCP server {server}: {note}"));
    }
    for secret in &imported.secrets {
        output::warning(&format!(
            "MCP server {}: the secret in {} was not copied; set the environment variable {}",
            secret.server, secret.key, secret.variable
        ));
    }
}

/// How long a process may take: every server is started and asked for its tools.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn reload(settings: &Settings, json: bool) -> Result<Exit> {
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

fn say(who: &str, answer: Option<&ReloadAnswer>) -> Result<()> {
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
