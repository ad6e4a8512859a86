//! The arguments: commands, global options, and the words that explain them.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::{
    agents, approvals, completing, demo, diff, documents, eval, init, keys, memory, replay, resume,
    run, serve, skills, teams, threads, trace, users, worker,
};
use crate::config::{DatabaseUrl, Overrides};
use crate::servers::Bundled;

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
  1  failed; what was done is kept, and `perihelion resume THREAD` goes on
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

/// Options of every command; each goes before the environment variable in brackets, that before the settings file.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Settings file; by default ./perihelion.toml where there is one [env: PERIHELION_CONFIG]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// MCP servers file; by default ./mcp-servers.toml [env: PERIHELION_SERVERS]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub servers: Option<PathBuf>,
    /// Database: sqlite:PATH, postgres://… or memory:; by default a file in the user's data directory [env: DATABASE_URL]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub database: Option<String>,
    /// Address of an OpenAI-compatible endpoint; its key is read from OPENAI_API_KEY [env: OPENAI_BASE_URL]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL")]
    pub model_url: Option<String>,
    /// Model name [env: OPENAI_MODEL]
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Log filter, such as info or perihelion=debug,warn [env: PERIHELION_LOG]
    #[arg(long, global = true, hide_short_help = true, value_name = "FILTER")]
    pub log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask a question, on a new thread or a named one.
    Run(run::Args),
    /// Answer an open question of a thread, or go on after a crash, a failure or a stop.
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

/// Quotes a word for a POSIX shell, where it needs it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
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
