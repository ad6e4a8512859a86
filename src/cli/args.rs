//! The arguments: commands, global options, and the words that explain them.

use std::sync::LazyLock;

use clap::{Parser, Subcommand};

use super::globals::Globals;
use super::{
    accounts, agents, approvals, completing, demo, diff, doctor, documents, eval, explain, init,
    memory, replay, resume, run, serve, skills, teams, threads, trace, worker,
};
use perihelion_servers::Bundled;

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

impl Command {
    /// Returns whether it has work for several processors: many runs, servers or documents at the same time.
    pub fn does_much_at_once(&self) -> bool {
        use Command::{Agents, Demo, Doctor, Documents, Eval, Mcp, Serve, Worker};
        matches!(
            self,
            Agents(_)
                | Demo(_)
                | Doctor(_)
                | Documents(_)
                | Eval(_)
                | Mcp { .. }
                | Serve(_)
                | Worker(_)
        )
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
}
