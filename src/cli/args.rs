//! The arguments: commands, global options, and the words that explain them.

use clap::{Parser, Subcommand};

use super::globals::Globals;
use super::{
    agents, approvals, completing, demo, diff, documents, eval, init, keys, memory, replay, resume,
    run, serve, skills, teams, threads, trace, users, worker,
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

Global options, which every command takes, are shown by --help.

Exit codes:
  0  done
  1  failed; what was done is kept, and `perihelion resume THREAD` continues
  2  wrong usage or configuration
  3  waiting for a person: standard error says how to answer";

/// Runs durable, supervised agent graphs: a thread survives crashes, restarts and days of waiting.
#[derive(Debug, Parser)]
#[command(name = "perihelion", version, about, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask a question, on a new thread or a named one.
    Run(run::Args),
    /// Answer an open question of a thread, or continue after a crash, a failure or a stop.
    Resume(resume::Args),
    /// List the calls that wait for approval, over all threads, and decide them.
    Approvals(approvals::Args),
    /// List, inspect, fork, move and remove threads; no model and no servers are needed.
    Threads(threads::Args),
    /// Show a run as a tree: transitions, thoughts, calls, reflections, time and tokens.
    Trace(trace::Args),
    /// Run a recorded thread again, offline, and show where it would go otherwise.
    Replay(replay::Args),
    /// Compare two runs, or two threads, step by step.
    Diff(diff::Args),
    /// Run a suite of questions, and say by the exit code whether the answers are as expected.
    Eval(eval::Args),
    /// Show the agents that the MCP servers give, and what is wrong with those that give none.
    Agents(agents::Args),
    /// Add documents, and find what answers a question in them.
    Documents(documents::Args),
    /// Design teams of agents for goals, see, run, share and delete them.
    Teams(teams::Args),
    /// See, find, share and forget what agents learned from work that was approved.
    Skills(skills::Args),
    /// See, set and forget what is known of a user.
    Memory(memory::Args),
    /// Resume threads that were handed to the workers, and with those whose process died.
    Worker(worker::Args),
    /// Serve threads over HTTP: the Agent Server API, streams, and a page for people.
    Serve(serve::Args),
    /// Make, list and revoke API keys of the service.
    Keys(keys::Args),
    /// Add, list and shut out users of the service.
    Users(users::Args),
    /// Run the whole star on bundled servers and a scripted model: no key, no network.
    Demo(demo::Args),
    /// Serve a bundled MCP server on standard input and output, or over HTTP.
    Mcp {
        /// Serve over streamable HTTP at /mcp of this address instead; loopback only
        #[arg(long, value_name = "HOST:PORT")]
        http: Option<std::net::SocketAddr>,
        /// Try what the server needs, say what to fix, and end
        #[arg(long, conflicts_with = "http")]
        check: bool,
        #[command(subcommand)]
        server: Bundled,
    },
    /// Parse a document from standard input and end; what the program starts for each one.
    #[command(hide = true)]
    ParseDocument { name: String },
    /// Write a first perihelion.toml and a first mcp-servers.toml.
    Init(init::Args),
    /// Check settings, database, model endpoint and servers, and say what to fix.
    Doctor,
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  perihelion completions bash > ~/.local/share/bash-completion/completions/perihelion"
    )]
    Completions { shell: clap_complete::Shell },
    /// List names for the completion of a shell.
    #[command(hide = true)]
    Complete { what: completing::What },
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
