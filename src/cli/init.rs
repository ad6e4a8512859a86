//! `perihelion init`: a first settings file and a first servers file.

use std::path::{Path, PathBuf};

use super::{Error, Exit, Globals, Result, environment, files, output};
use perihelion_llm::openai::{self, Abilities, LOCAL, Local, Schemas};
use perihelion_settings::config::{Overrides, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Existing files are not changed, unless you pass --force.

Examples:
  perihelion init
  perihelion init --local
  perihelion --servers team/mcp-servers.toml init")]
pub struct Args {
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Use the model server on this machine: Ollama, llama.cpp, vLLM or LM Studio, or the one at URL
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    local: Option<Option<String>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const SERVERS_FILE: &str = "mcp-servers.toml";
const SETTINGS: &str = include_str!("starter/settings.toml");
const SERVERS: &str = include_str!("starter/servers.toml");

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

/// Writes the settings of a model on this machine in place of the examples.
fn settings_of((local, abilities): &(Local, Abilities)) -> String {
    let mut lines = format!("url = {:?}\nmodel = {:?}\n", local.url, local.model);
    if let Some(window) = abilities.window {
        lines.push_str(&format!("context_window = {window}\n"));
        if abilities.suits_compact() {
            // A small model that rambles on would otherwise fill the context.
            lines.push_str(&format!("max_tokens = {}\n", window / 4));
        }
    }
    // Without a graphics card, an answer can take minutes, and a repeated request as long again.
    lines.push_str("timeout_sec = 600\n");
    if abilities.suits_compact() {
        lines.push_str("protocol = \"compact\"\n");
    }
    if abilities.schemas == Schemas::Ignored {
        lines.push_str("json_mode = \"text\"\n");
    }
    if abilities.sees {
        lines.push_str("input = [\"text\", \"image\"]\n");
    }
    let examples = "# `perihelion init --local` finds the model server on this machine.\n# url = \"http://localhost:11434/v1\"\n# model = \"gpt-4.1-mini\"\n";
    SETTINGS.replace(examples, &lines)
}

/// Finds the model server on this machine that answers first in the order of the list, or the one at `url`.
async fn find(url: Option<&str>) -> Result<(Local, Abilities)> {
    let settings = Settings::load(Overrides::default(), None, &environment)?;
    let places = url.map_or_else(|| LOCAL.to_vec(), |url| vec![("model server", url)]);
    for local in openai::find_local(&settings.models, &places).await {
        match openai::probe(&local.url, &local.settings).await {
            Ok(abilities) => {
                let Local { server, url, model, .. } = &local;
                output::note(&format!("found {server} at {url}: {model}"));
                return Ok((local, abilities));
            }
            Err(error) => output::warning(&error.to_string()),
        }
    }
    let shown = |&(server, url): &(&str, &str)| format!("{server} ({url})");
    let looked: Vec<String> = places.iter().map(shown).collect();
    Err(Error::NoModelServer(url.map_or_else(|| looked.join(", "), str::to_owned)))
}

pub(super) async fn run(globals: &Globals, args: &Args) -> Result<Exit> {
    let local = match &args.local {
        Some(url) => Some(find(url.as_deref()).await?),
        None => None,
    };
    let text = local.as_ref().map_or_else(|| SETTINGS.to_owned(), settings_of);
    let settings = Settings::file(globals.config.as_deref(), &environment);
    let settings = settings.unwrap_or_else(|| PathBuf::from("perihelion.toml"));
    let set = || environment("PERIHELION_SERVERS").filter(|path| !path.is_empty());
    let given = globals.servers.clone().or_else(|| set().map(PathBuf::from));
    let (servers, named) = match given {
        None => (settings.with_file_name(SERVERS_FILE), PathBuf::from(SERVERS_FILE)),
        Some(path) if settings.parent() == Some(Path::new("")) => (path.clone(), path),
        // The settings read a relative path from their own directory.
        Some(path) => (path.clone(), std::path::absolute(&path).unwrap_or(path)),
    };
    let quoted = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
    let text = text.replace(&quoted(Path::new(SERVERS_FILE)), &quoted(&named));
    let wanted = [(settings, text), (servers, SERVERS.to_owned())];
    let (kept, fresh): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|(path, _)| path.exists() && !args.force);
    let names = |files: &[(PathBuf, String)]| -> Vec<String> {
        files.iter().map(|(path, _)| path.display().to_string()).collect()
    };
    if fresh.is_empty() {
        return Err(Error::Exists(names(&kept).join(", ")));
    }
    for (path, text) in &fresh {
        files::make_directory_of(path)?;
        files::write(path, text)?;
    }
    if args.json {
        let done = serde_json::json!({ "written": names(&fresh), "kept": names(&kept) });
        return output::json(&done).map(Exit::from);
    }
    for name in names(&fresh) {
        output::note(&format!("wrote {name}"));
    }
    for name in names(&kept) {
        output::note(&format!("kept {name}, which already exists"));
    }
    output::note(match local {
        Some(_) => "next, run `perihelion doctor`",
        None => "next, set OPENAI_BASE_URL or OPENAI_API_KEY, then run `perihelion doctor`",
    });
    Ok(Exit::Done)
}
