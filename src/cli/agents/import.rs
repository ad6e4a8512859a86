//! `perihelion agents import`: imports servers from the configuration of other programs.

use std::path::PathBuf;

use super::output;
use crate::cli::files::{read, replace_text};
use crate::cli::{Error, Exit};
use perihelion_runtime::{self as runtime, ImportFormat, Imported, import_servers};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --write, the tables are printed and no file is changed. To follow later changes of the other file,
add  import = [\".mcp.json\"]  at the top of the servers file instead.

Examples:
  perihelion agents import .mcp.json
  perihelion agents import .vscode/mcp.json --write
  perihelion agents import ~/.codex/config.toml --format codex --write")]
pub(super) struct Args {
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

pub(super) fn run(settings: &Settings, args: &Args) -> Result<Exit, Error> {
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
        replace_text(&place, &imported.file)?;
        if let Ok(permissions) = permissions {
            let _ = std::fs::set_permissions(&place, permissions);
        }
        let servers = imported.servers.join(", ");
        output::note(&format!("added to {}: {servers}", target.display()));
    } else {
        output::text(&imported.tables)?;
    }
    tell(&imported);
    Ok(Exit::Done)
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
