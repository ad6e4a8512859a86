//! The command line: arguments in, answers and exit codes out.
//!
//! Enter at [`main`]. Every command that runs a thread uses [`execute`]. Invariants: standard output contains
//! only the answer or the requested JSON; an error is one line on standard error that includes the fix.
//! Deliberately absent: decisions about runs, which `runtime` makes.
#![expect(clippy::print_stderr, reason = "only this module prints")]

mod accounts;
mod agents;
mod approvals;
mod args;
mod bars;
mod changes;
mod completing;
mod demo;
mod diff;
mod doctor;
mod documents;
mod endpoints;
mod error;
mod escape;
mod eval;
pub mod execute;
mod explain;
mod files;
mod found;
mod globals;
mod graphs;
mod init;
mod inline;
mod logging;
mod markdown;
mod memory;
mod opening;
mod output;
mod parts;
mod progress;
mod questions;
mod reached;
mod replay;
mod resume;
mod run;
mod serve;
mod show;
mod signals;
mod skills;
mod system;
mod teams;
mod threads;
mod trace;
mod worker;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};

pub use agents::schema as servers_schema;
pub use args::Cli;
pub use error::{Error, Exit, Result};
pub use globals::Globals;
pub use serve::{Serving, start as serve};
pub use signals::Signals;

use self::args::Command;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{self as runtime, Graphs};
use perihelion_servers::{Bundled, Finding};
use perihelion_settings::config::{LogFormat, Overrides, Settings, variables};

/// Time for remaining tasks to end after the command.
const GRACE: Duration = Duration::from_millis(500);

/// Stack of each thread that runs graphs. The future of a team within a team is deep, especially in unoptimized builds.
/// Unused stack uses no memory.
const STACK_BYTES: usize = 16 << 20;

/// Runs the program: parses the arguments, runs the command, and returns the exit code.
pub fn main() -> ExitCode {
    main_with(Graphs::new())
}

/// Runs the program with its own graphs: its commands serve, run, show and replay their threads.
pub fn main_with(own: Graphs) -> ExitCode {
    graphs::add(own);
    system::keep_private();
    // The settings can choose another format. Until they are read, errors have that of the environment.
    output::set_json_lines(LogFormat::of_environment(&environment) == LogFormat::Json);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                let error_text = error.render().to_string();
                let message = error_text.lines().next().unwrap_or_default();
                let message = message.strip_prefix("error: ").unwrap_or(message);
                if wants_json() {
                    tell_as_json("usage", None, message, None);
                }
                if output::has_json_lines() {
                    output::error(error_text.strip_prefix("error: ").unwrap_or(&error_text));
                    return Exit::Usage.into();
                }
            }
            // Ends the process on `--help`, `--version` (0) and bad usage (2).
            error.exit()
        }
    };
    if let Command::ParseDocument { name, languages, scan_timeout } = &cli.command {
        let seconds = *scan_timeout;
        let tesseract =
            languages.clone().map(|languages| runtime::Tesseract { languages, seconds });
        let parsed = runtime::parse_document(name, tesseract).map_err(Error::Output);
        return parsed.map_or_else(|error| fail(&error), |()| Exit::Done).into();
    }
    // The main thread has the stack that its shell allows, and a single run is on the thread that it begins on.
    let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(STACK_BYTES);
    match thread.spawn(move || work(cli)).map(JoinHandle::join) {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => fail(&Error::Threads(error)).into(),
    }
}

fn work(cli: Cli) -> Exit {
    // Nodes of a program's own graphs can block their thread.
    let needs_threads = !graphs::own().is_empty() || cli.command.does_much_at_once();
    let mut builder = if needs_threads {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        // With one thread, an answer of the model or the database wakes no thread in vain.
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = match builder.enable_all().thread_stack_size(STACK_BYTES).build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Error::Threads(error)),
    };
    let exit = runtime.block_on(dispatch(cli)).unwrap_or_else(|error| fail(&error));
    // Tasks of an interrupted command must not keep the process running.
    runtime.shutdown_timeout(GRACE);
    exit
}

fn fail(error: &Error) -> Exit {
    let exit = error.exit();
    let kind = match exit {
        Exit::Aborted => "stopped",
        Exit::Usage => "usage",
        _ => "failed",
    };
    if exit != Exit::Aborted {
        output::coded_error(&error.code(), &error.to_string());
    }
    if wants_json() && !output::has_written() {
        tell_as_json(kind, Some(error.code()), &error.to_string(), None);
    }
    exit
}

/// Returns whether the arguments ask for JSON, even if they are invalid.
fn wants_json() -> bool {
    let mut arguments = std::env::args_os().skip(1).take_while(|argument| argument != "--");
    arguments.any(|argument| argument == "--json" || argument == "--events")
}

/// Prints an error as JSON for programs that read standard output. Ignores a failure to print.
fn tell_as_json(kind: &str, code: Option<String>, message: &str, thread: Option<ThreadId>) {
    let mut error = serde_json::json!({ "type": kind, "message": output::one_line(message) });
    if let Some(code) = code {
        error["code"] = code.into();
    }
    let mut shown = serde_json::json!({ "error": error });
    if let Some(thread) = thread {
        shown["thread_id"] = thread.to_string().into();
    }
    let _ = output::json_line(&shown);
}

/// The options of this process, which replace the environment variables that they name.
static GIVEN: OnceLock<Globals> = OnceLock::new();

/// Reads one environment variable, or the option that goes before it, so that a server whose `env_vars` name it gets what this
/// process uses. Values that are not Unicode count as unset.
pub fn environment(name: &str) -> Option<String> {
    GIVEN.get().and_then(|globals| globals.variable(name)).or_else(|| std::env::var(name).ok())
}

async fn dispatch(cli: Cli) -> Result<Exit> {
    let Cli { globals, command } = cli;
    // A bundled server's options have the same names and other meanings.
    if !matches!(command, Command::Mcp { .. }) {
        GIVEN.get_or_init(|| globals.clone());
    }
    let started = |overrides| {
        let settings = globals.settings_with(overrides)?;
        logging::start(&settings.log).map(|()| settings)
    };
    let settings = || started(globals.overrides());
    match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "perihelion", &mut script);
            let script = String::from_utf8_lossy(&script);
            output::bytes(completing::with_names(&script, shell).as_bytes())?;
            Ok(Exit::Done)
        }
        // Completion prints names only.
        Command::Complete { what } => completing::run(&globals.settings()?, what).await,
        // It runs before there is a runtime.
        Command::ParseDocument { .. } => Ok(Exit::Done),
        Command::Init(args) => init::run(&globals, &args).await,
        Command::Explain(args) => explain::run(&args),
        Command::Doctor(args) => doctor::run(&globals, &args).await,
        Command::Mcp { http, check, server } => mcp(&globals, http, check, server).await,
        Command::Run(args) => run::run(&globals, settings()?, args).await,
        Command::Resume(args) => resume::run(&globals, settings()?, args).await,
        Command::Threads(args) => threads::run(&globals, settings()?, args).await,
        Command::Trace(args) => trace::run(settings()?, args).await,
        Command::Replay(args) => replay::run(settings()?, args).await,
        Command::Diff(args) => diff::run(settings()?, args).await,
        Command::Eval(args) => eval::run(&globals, settings()?, args).await,
        Command::Agents(args) => agents::run(settings()?, args).await,
        Command::Documents(args) => documents::run(settings()?, args).await,
        Command::Teams(args) => teams::run(&globals, settings()?, args).await,
        Command::Skills(args) => skills::run(settings()?, args).await,
        Command::Memory(args) => memory::run(settings()?, args).await,
        Command::Worker(args) => worker::run(started(args.overrides(&globals))?, args).await,
        Command::Serve(args) => serve::run(started(args.overrides(&globals))?, args).await,
        Command::Approvals(args) => approvals::run(&globals, settings()?, args).await,
        Command::Keys(args) => accounts::keys(settings()?, args).await,
        Command::Users(args) => accounts::users(settings()?, args).await,
        Command::Demo(args) => demo::run(&globals, settings()?, args).await,
    }
}

/// Runs a bundled server, which has its own --database option and ignores the global one.
async fn mcp(
    globals: &Globals,
    http: Option<SocketAddr>,
    check: bool,
    server: Bundled,
) -> Result<Exit> {
    let overrides = Overrides { log: globals.log.clone(), ..Overrides::default() };
    logging::start(&Settings::load(overrides, None, &environment)?.log)?;
    if check {
        let findings = server.check().await;
        output::text(&output::lines(&findings, Finding::line))?;
        return Ok(if findings.iter().any(Finding::is_bad) { Exit::Failed } else { Exit::Done });
    }
    match http {
        None => server.run().await?,
        Some(addr) => {
            let ready = |addr| output::note(&format!("serving MCP at http://{addr}/mcp"));
            server.run_http(addr, ready).await?;
        }
    }
    Ok(Exit::Done)
}

impl Globals {
    /// Loads the settings: options go before environment, file and defaults.
    ///
    /// # Errors
    /// [`Error::Runtime`] naming the option, the variable, or the file's line and key.
    pub fn settings(&self) -> Result<Settings> {
        self.settings_with(self.overrides())
    }

    fn settings_with(&self, overrides: Overrides) -> Result<Settings> {
        let file = Settings::file(self.config.as_deref(), &environment);
        let settings = Settings::load(overrides, file.as_deref(), &environment)?;
        // A user's own variables are named in one of the files.
        let files = file.iter().chain([&settings.servers.file]);
        let texts: Vec<String> =
            files.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        variables::check(names, &texts)?;
        Ok(settings)
    }
}
