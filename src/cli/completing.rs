//! Completions of threads and agents: the queries of the generated scripts.

use clap_complete::Shell;

use super::{Exit, Result, environment, opening, output};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Agents, Listing, Threads};
use perihelion_settings::config::Settings;

/// Threads that are offered: the newest.
const THREADS: u32 = 50;

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum What {
    Threads,
    Agents,
}

pub(super) async fn run(settings: &Settings, what: What) -> Result<Exit> {
    let names = match what {
        What::Threads => threads(settings).await?,
        // The prefix of an agent may be left out.
        What::Agents => Agents::names(settings, &environment),
    };
    if !names.is_empty() {
        output::text(&names.join("\n"))?;
    }
    Ok(Exit::Done)
}

async fn threads(settings: &Settings) -> Result<Vec<String>> {
    let newest = Listing { limit: Some(THREADS), ..Listing::default() };
    let list = async |threads: &Threads| Ok(threads.list(&newest).await?);
    let listed = opening::reading(settings, list).await?;
    let ids: Vec<_> = listed.iter().map(|info| info.id).collect();
    // A title may be a name that the thread was given, or not.
    let name = |title: &str| {
        let is_word = !title.is_empty() && !title.chars().any(char::is_whitespace);
        is_word.then(|| title.to_owned())
    };
    let names = listed.iter().zip(Threads::shorts(&ids)).map(|(info, short)| {
        let title = info.title.as_deref().and_then(name);
        title.filter(|title| ThreadId::from_name(title).0 == info.id).unwrap_or(short)
    });
    Ok(names.collect())
}

/// Adds the queries for names to a generated script; other shells keep the generated one.
pub(super) fn with_names(script: &str, shell: Shell) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Fish => format!("{script}{FISH}"),
        Shell::Zsh => with_zsh_names(script),
        _ => script.to_owned(),
    }
}

const BASH: &str = include_str!("completions/perihelion.bash");
const FISH: &str = include_str!("completions/perihelion.fish");
const ZSH: &str = include_str!("completions/perihelion.zsh");

/// Has arguments of a script for zsh that are threads or agents completed by name.
fn with_zsh_names(script: &str) -> String {
    let lines = script.lines().map(|line| {
        let text = line.trim_start().trim_start_matches(['\'', ':']);
        let is_thread = text.starts_with("thread -- ") || text.contains("--thread=");
        let is_agent = ["--prefer=", "--disable="].iter().any(|option| text.contains(option));
        if is_thread {
            line.replace(":_default'", ":_perihelion_threads'")
        } else if is_agent {
            line.replace(":_default'", ":_perihelion_agents'")
        } else {
            line.to_owned()
        }
    });
    // The first line says what the script completes and must stay the first.
    let mut lines: Vec<String> = lines.collect();
    lines.insert(lines.len().min(1), ZSH.to_owned());
    lines.join("\n") + "\n"
}
