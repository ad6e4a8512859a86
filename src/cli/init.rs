//! `perihelion init`: a first settings file and a first servers file.

use std::path::{Path, PathBuf};

use super::{Error, Exit, Globals, files, output};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Existing files are not changed, unless you pass --force.

Examples:
  perihelion init
  perihelion --servers team/mcp-servers.toml init")]
pub struct Args {
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const SETTINGS: &str = r#"# Settings of Perihelion. Every key has a default and an environment variable. Options override both.

[models]
# Base URL of any OpenAI-compatible endpoint, including /v1. Set the API key in OPENAI_API_KEY.
# url = "http://localhost:11434/v1"
# model = "gpt-4.1-mini"

[servers]
file = "mcp-servers.toml"

# [store]
# database = "postgres://localhost/perihelion"
"#;

const SERVERS: &str = r#"# One table per MCP server, and one agent per table. `perihelion agents import .mcp.json --write` imports servers
# from another program. `perihelion agents` lists the agents.

# Reads files in this directory. Never changes files.
[mcp_servers.files]
command = "perihelion"
args = ["mcp", "files", "--root", "."]
default_tools_effect = "read_only"

# Appends notes to a file.
[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]

# A server that runs as a child process:
# [mcp_servers.tracker]
# command = "npx"
# args = ["-y", "@example/tracker-mcp"]
# env = { TOKEN = "${TRACKER_TOKEN}" }

# A server over HTTP:
# [mcp_servers.search]
# url = "https://search.example.com/mcp"
# bearer_token_env_var = "SEARCH_TOKEN"
"#;

/// Says why there is no agent, and how to get one.
pub(super) fn no_agents(settings: &Settings) -> String {
    let file = &settings.servers.file;
    let shown = file.display();
    if file.exists() {
        format!("no agents: {shown} has no usable server; run `perihelion agents` for details")
    } else {
        format!(
            "no agents, because {shown} does not exist; create it with `perihelion init` or `perihelion agents import`"
        )
    }
}

pub(super) fn run(globals: &Globals, args: &Args) -> Result<Exit, Error> {
    let settings = globals.config.clone().unwrap_or_else(|| PathBuf::from("perihelion.toml"));
    let servers = globals.servers.clone().unwrap_or_else(|| PathBuf::from("mcp-servers.toml"));
    let named = servers.display().to_string();
    let wanted =
        [(settings, SETTINGS.replace("mcp-servers.toml", &named)), (servers, SERVERS.to_owned())];
    let (kept, fresh): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|(path, _)| path.exists() && !args.force);
    let names = |files: &[(PathBuf, String)]| -> Vec<String> {
        files.iter().map(|(path, _)| path.display().to_string()).collect()
    };
    if fresh.is_empty() {
        return Err(Error::Exists(names(&kept).join(", ")));
    }
    for (path, text) in &fresh {
        write(path, text)?;
    }
    if args.json {
        let done = serde_json::json!({ "written": names(&fresh), "kept": names(&kept) });
        return output::json(&done).map(|()| Exit::Done);
    }
    for name in names(&fresh) {
        output::note(&format!("wrote {name}"));
    }
    for name in names(&kept) {
        output::note(&format!("kept {name}, which already exists"));
    }
    output::note("next, set OPENAI_BASE_URL or OPENAI_API_KEY, then run `perihelion doctor`");
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    files::write(path, text)
}
