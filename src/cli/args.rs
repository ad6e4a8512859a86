//! The arguments: commands, global options, and the words that explain them.

use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use super::{
    accounts, agents, approvals, completing, demo, diff, doctor, documents, eval, explain, init,
    memory, replay, resume, run, serve, skills, teams, threads, trace, worker,
};
use perihelion_servers::Bundled;
use perihelion_settings::config::{DatabaseUrl, Overrides};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  perihelion run \"Which customers left last year, and why?\"
  perihelion run - --thread weekly-report --json < question.txt
  perihelion resume weekly-report --message \"Only those in Europe\"
  perihelion threads
  perihelion agents
  perihelion demo
  perihelion doctor

Every command also accepts the global options that --help shows.

Exit codes:
  0  Done.
  1  Failed. `perihelion resume THREAD` continues the run.
  2  Invalid usage or configuration.
  3  Waiting for a person. Standard error shows how to answer.";

/// The version, the commit if the build named it, and the optional features.
pub(super) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("BUILD_COMMIT").filter(|commit| !commit.is_empty());
    let commit = commit.map(|commit| format!("commit {commit}, "));
    let features = if cfg!(feature = "python-wasm") { "python-wasm" } else { "none" };
    let version = env!("CARGO_PKG_VERSION");
    format!("{version} ({}features: {features})", commit.unwrap_or_default())
});

/// Run durable, supervised agent graphs. Threads survive crashes, restarts and days of waiting.
#[derive(Debug, Parser)]
#[command(name = "perihelion", version = VERSION.as_str(), about, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask a question on a new or existing thread.
    Run(run::Args),
    /// Answer an open question, or continue a thread after a crash, failure or stop.
    Resume(resume::Args),
    /// List tool calls that need approval, and approve or deny them.
    Approvals(approvals::Args),
    /// List, inspect, fork, move and delete threads. Needs no model and no servers.
    Threads(threads::Args),
    /// Show a run as a tree: transitions, thoughts, calls, reflections, times and tokens.
    Trace(trace::Args),
    /// Replay a recorded thread offline and show the first difference.
    Replay(replay::Args),
    /// Compare two runs or two threads step by step.
    Diff(diff::Args),
    /// Run a suite of questions and check the answers.
    Eval(eval::Args),
    /// Show the agents of the MCP servers, and the servers that failed.
    Agents(agents::Args),
    /// Add, search and manage documents.
    Documents(documents::Args),
    /// Design, run, share and delete teams of agents.
    Teams(teams::Args),
    /// Show, search, share and delete skills that agents learned from approved results.
    Skills(skills::Args),
    /// Show, set and delete memories about a user.
    Memory(memory::Args),
    /// Run queued threads, and continue threads after a process died.
    Worker(worker::Args),
    /// Serve threads over HTTP: APIs, event streams and the web UI.
    Serve(serve::Args),
    /// Create, list and revoke API keys of the service.
    Keys(accounts::KeysArgs),
    /// Add, list and disable users of the service.
    Users(accounts::UsersArgs),
    /// Run a demo with bundled servers and a scripted model. Needs no API key and no network.
    Demo(demo::Args),
    /// Serve a bundled MCP server over standard input and output, or over HTTP.
    Mcp {
        /// Serve over streamable HTTP at /mcp on this loopback address
        #[arg(long, value_name = "HOST:PORT")]
        http: Option<std::net::SocketAddr>,
        /// Check the server's requirements, suggest fixes, and exit
        #[arg(long, conflicts_with = "http")]
        check: bool,
        #[command(subcommand)]
        server: Bundled,
    },
    /// Parse a document from standard input. The program starts this command for each document.
    #[command(hide = true)]
    ParseDocument {
        name: String,
        #[arg(long)]
        languages: Option<String>,
        #[arg(long, default_value_t = 0)]
        scan_timeout: u64,
    },
    /// Create a starter perihelion.toml and mcp-servers.toml.
    Init(init::Args),
    /// Check the settings, database, model endpoint, servers and system, and suggest fixes.
    Doctor(doctor::Args),
    /// Explain an error by its code.
    Explain(explain::Args),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  perihelion completions bash > ~/.local/share/bash-completion/completions/perihelion"
    )]
    Completions { shell: clap_complete::Shell },
    /// List names for shell completion.
    #[command(hide = true)]
    Complete { what: completing::What },
}

/// Options of every command; each goes before the environment variable in brackets, that before the settings file.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Settings file. Defaults to ./perihelion.toml if it exists [env: PERIHELION_CONFIG]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// MCP servers file. Defaults to ./mcp-servers.toml [env: PERIHELION_SERVERS]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub servers: Option<PathBuf>,
    /// Database: sqlite:PATH, postgres://… or memory:. Defaults to a file in the user's data directory [env: DATABASE_URL]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub database: Option<String>,
    /// Base URL of an OpenAI-compatible endpoint. The key comes from OPENAI_API_KEY [env: OPENAI_BASE_URL]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub model_url: Option<String>,
    /// Model name [env: OPENAI_MODEL]
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Log filter, such as info or perihelion=debug,warn [env: PERIHELION_LOG]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILTER")]
    pub log: Option<String>,
}

impl Globals {
    /// Returns the options as what goes before environment and file.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            servers: self.servers.clone(),
            database: self.database.clone(),
            model_url: self.model_url.clone(),
            model: self.model.clone(),
            log: self.log.clone(),
            ..Overrides::default()
        }
    }

    /// Returns what an option replaces an environment variable by, for processes that are started with it.
    pub fn variable(&self, name: &str) -> Option<String> {
        let path = |path: &Option<PathBuf>| {
            Some(std::path::absolute(path.as_ref()?).ok()?.to_string_lossy().into_owned())
        };
        match name {
            "PERIHELION_CONFIG" => path(&self.config),
            "PERIHELION_SERVERS" => path(&self.servers),
            "DATABASE_URL" => self.database.clone(),
            "OPENAI_BASE_URL" => self.model_url.clone(),
            "OPENAI_MODEL" => self.model.clone(),
            "PERIHELION_LOG" => self.log.clone(),
            _ => None,
        }
    }

    /// Returns the program's name with the options given, for commands to be typed next; no password in it.
    pub fn invocation(&self) -> String {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let database = self.database.as_ref().map(|given| {
            DatabaseUrl::new(given.clone()).map_or_else(|_| given.clone(), |url| url.to_string())
        });
        let options = [
            ("--config", path(&self.config)),
            ("--servers", path(&self.servers)),
            ("--database", database),
            ("--model-url", self.model_url.clone()),
            ("--model", self.model.clone()),
        ];
        let mut line = "perihelion".to_owned();
        for (option, value) in options {
            if let Some(value) = value {
                line.push_str(&format!(" {option} {}", quoted(&value)));
            }
        }
        line
    }
}

/// Quotes a word for a POSIX shell, if necessary.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn the_next_command_repeats_the_options_without_the_password() {
        let globals = Globals {
            database: Some("postgres://ann:s3cret@db/p".into()),
            config: Some("my settings.toml".into()),
            ..Globals::default()
        };
        let line = globals.invocation();
        assert_eq!(line, "perihelion --config 'my settings.toml' --database postgres://ann@db/p");
    }
}
