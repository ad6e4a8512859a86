//! Takes over the servers that other programs are configured with.

use std::path::{Path, PathBuf};

use super::output;
use crate::cli::{Error, Exit};
use perihelion_runtime::{self as runtime, ImportFormat, Imported, import_servers};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --write the tables are printed and nothing is changed. To use a file as it stands, whatever happens
to it later, write  import = [\".mcp.json\"]  at the top of the servers file instead.

Examples:
  perihelion agents import .mcp.json
  perihelion agents import .vscode/mcp.json --write
  perihelion agents import ~/.codex/config.toml --format codex --write")]
pub(super) struct Args {
    /// The other program's file: Claude's .mcp.json, VS Code's mcp.json, Codex's config.toml
    file: PathBuf,
    /// Its form; by default found out
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
        write(target, &imported.file)?;
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

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Replaces a file by one that is whole at every moment.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    // A link stays one: what it points at is replaced.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let fresh = path.with_extension(format!("{}.new", uuid::Uuid::new_v4()));
    std::fs::write(&fresh, text).map_err(failed)?;
    if let Ok(data) = std::fs::metadata(path) {
        let _ = std::fs::set_permissions(&fresh, data.permissions());
    }
    std::fs::rename(&fresh, path).map_err(|source| {
        let _ = std::fs::remove_file(&fresh);
        failed(source)
    })
}
