//! `perihelion init`: a first settings file and a first servers file.

use std::path::{Path, PathBuf};

use super::{Error, Exit, Globals, output};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Files that are there already are left as they are; --force replaces them.

Examples:
  perihelion init
  perihelion --servers team/mcp-servers.toml init")]
pub struct Args {
    /// Replace files that are there already
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const SETTINGS: &str = r#"# Settings of Perihelion. Every key has a default and an environment variable; options go before both.

[models]
# Any OpenAI-compatible endpoint, up to and including /v1; its key stays in the variable OPENAI_API_KEY.
# url = "http://localhost:11434/v1"
# model = "gpt-4.1-mini"

[servers]
file = "mcp-servers.toml"

# [store]
# database = "postgres://localhost/perihelion"
"#;

const SERVERS: &str = r#"# One table per MCP server, and one agent per table. `perihelion agents import .mcp.json --write` takes over the
# servers that another program is configured with; `perihelion agents` shows what there is.

# Reads files below this directory, and changes none.
[mcp_servers.files]
command = "perihelion"
args = ["mcp", "files", "--root", "."]
default_tools_effect = "read_only"

# Keeps notes in a file.
[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]

# A server that is started here:
# [mcp_servers.tracker]
# command = "npx"
# args = ["-y", "@example/tracker-mcp"]
# env = { TOKEN = "${TRACKER_TOKEN}" }

# A server that runs elsewhere:
# [mcp_servers.search]
# url = "https://search.example.com/mcp"
# bearer_token_env_var = "SEARCH_TOKEN"
"#;

/// Says why there is no agent, and how to get one.
pub(super) fn no_agents(settings: &Settings) -> String {
    let file = &settings.servers.file;
    let shown = file.display();
    let way = "`perihelion init` writes a first one";
    if file.exists() {
        format!(
            "there are no agents: {shown} names no server that can be used; see `perihelion agents`"
        )
    } else {
        format!(
            "there are no agents: there is no {shown}; {way}, `perihelion agents import` takes one over"
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
        output::note(&format!("kept {name}, which was there already"));
    }
    output::note(
        "next: set OPENAI_BASE_URL or OPENAI_API_KEY, then see what `perihelion doctor` says",
    );
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}
