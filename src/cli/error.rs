//! Why a command failed, and the exit codes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::demo;
use perihelion_engine::checkpoint;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner;
use perihelion_runtime as runtime;
use perihelion_servers as servers;
use perihelion_service as service;
use perihelion_settings::config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    Usage,
    Waiting,
    /// Stopped by a signal.
    Aborted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Waiting => 3,
            Exit::Aborted => 130,
        })
    }
}

impl From<()> for Exit {
    fn from((): ()) -> Self {
        Self::Done
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    #[error(transparent)]
    Demo(demo::Error),
    #[error("cannot host graphs: {0}")]
    Graphs(#[source] perihelion_host::Error),
    #[error(transparent)]
    Server(#[from] servers::Error),
    #[error("no user given; pass --user NAME")]
    NoUser,
    #[error("invalid log filter: {filter}: {reason}; correct log.filter, PERIHELION_LOG or --log")]
    Log {
        filter: String,
        #[source]
        reason: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot read standard input: {0}")]
    Input(std::io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(std::io::Error),
    #[error("cannot use {}: {reason}", path.display())]
    Suite { path: PathBuf, reason: String },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("invalid team design in {}: {reason}", path.display())]
    Design {
        path: PathBuf,
        #[source]
        reason: serde_json::Error,
    },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("stopped by a signal")]
    Stopped,
    #[error("cannot install signal handlers: {0}")]
    Signals(std::io::Error),
    #[error("cannot start operating system threads: {0}")]
    Threads(std::io::Error),
    #[error("unknown agent: {name}{hint}; run `perihelion agents` to list agents")]
    UnknownAgent { name: String, hint: String },
    #[error("MCP server {server} has no agent: {problem}")]
    NoAgent { server: String, problem: String },
    #[error("unknown thread: {0}; run `perihelion threads` to list threads")]
    UnknownThread(String),
    #[error("thread {thread} is running in {who}; {what}")]
    AtWork { thread: String, who: String, what: &'static str },
    #[error(
        "thread {0} is finished; to ask another question, run: perihelion run --thread {0} QUESTION"
    )]
    Finished(String),
    #[error("invalid JSON Schema in {}: invalid JSON: {source}", path.display())]
    Schema { path: PathBuf, source: serde_json::Error },
    #[error("no changes given; pass --set FIELD=VALUE")]
    NothingToSet,
    #[error("thread {0} was deleted during its run; ask again on another thread")]
    Deleted(String),
    #[error("cannot cancel thread {0}, because it is not running")]
    NothingUnderWay(String),
    #[error("file already exists: {0}; pass --force to overwrite it")]
    Exists(String),
    #[error(
        "no model server answers at {0}; start one there, or pass the URL of another one: --local URL"
    )]
    NoModelServer(String),
    #[error("cannot ask for confirmation without a terminal; pass --yes to {what}: {name}")]
    Unconfirmed { what: &'static str, name: String },
    #[error(
        "cannot listen on {0} without authentication; use a loopback address, such as 127.0.0.1:16686"
    )]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {addr}: {source}; try another --addr")]
    Listen { addr: SocketAddr, source: std::io::Error },
    #[error("cannot serve metrics on {addr}: {source}; try another address for --metrics")]
    ServeMetrics { addr: SocketAddr, source: std::io::Error },
    #[error("directory of the Jaeger UI has no index.html: {}", .0.display())]
    NoJaegerUi(PathBuf),
    #[error(
        "cannot listen on {0} without authentication; create a key with `perihelion keys create NAME`, set PERIHELION_SERVE_TOKEN, or listen on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    #[error("cannot read the password; pass it as the first line of standard input")]
    NoPassword,
    #[error(
        "no pending request has this ID: {0}; it may be answered, expired or unknown. Run `perihelion approvals` to list pending requests"
    )]
    NotWaiting(String),
    #[error("{0} with --addr or serve.addr")]
    Serve(#[source] perihelion_http::Error),
    #[error("cannot create an HTTP client: {}", perihelion_http::reach::cause(.0))]
    Client(reqwest::Error),
    #[error(transparent)]
    Service(service::Error),
    #[error("cannot run Python programs: {0}. This demo needs bubblewrap and Python 3")]
    NoSandbox(String),
    #[error("unknown error code: {0}; run `perihelion explain` to list all codes")]
    UnknownCode(String),
    #[error("--result requires --outcome done")]
    StrayResult,
    #[error("--run can be used at most twice, for A and for B")]
    ManyRuns,
    #[error(
        "no limit to prune by; pass --older-than, --keep or --keep-steps, or set limits under [retention] in the settings"
    )]
    NothingToPrune,
    #[error(
        "no age to prune by; pass --older-than, or set max_age under [documents] in the settings"
    )]
    NoDocumentAge,
    #[error("threads that could not be shortened: {0}; see the warnings above")]
    NotShortened(usize),
    #[error("threads that could not continue: {0}; see the warnings above")]
    NotContinued(usize),
    #[error("the collector rejected {0} spans; see its log for the reason")]
    SpansRejected(u64),
    #[error("the answer does not match the JSON Schema; use a simpler schema or another model")]
    SchemaMismatch,
    #[error("{0}")]
    RunFailed(String),
    #[error("there is no archive; set dir under [archive] in the settings")]
    NoArchive,
    #[error("threads that could not be archived: {0}; see the warnings above")]
    NotArchived(usize),
    #[error("the service ended unexpectedly: {0}")]
    Ended(tokio::task::JoinError),
    /// Two threads could not be compared.
    #[error(transparent)]
    CannotCompare(Box<Error>),
}

impl Error {
    pub fn exit(&self) -> Exit {
        match self {
            Self::Stopped => Exit::Aborted,
            Self::Runtime(error) if !error.is_usage() => Exit::Failed,
            Self::Server(_)
            | Self::Demo(_)
            | Self::Input(_)
            | Self::Output(_)
            | Self::Write { .. }
            | Self::Signals(_)
            | Self::Threads(_)
            | Self::Listen { .. }
            | Self::Serve(_)
            | Self::Service(_)
            | Self::Client(_)
            | Self::ServeMetrics { .. }
            | Self::NoAgent { .. }
            | Self::NoSandbox(_)
            | Self::NotShortened(_)
            | Self::NotArchived(_)
            | Self::NotContinued(_)
            | Self::SpansRejected(_)
            | Self::SchemaMismatch
            | Self::RunFailed(_)
            | Self::Ended(_)
            | Self::AtWork { .. }
            | Self::Deleted(_)
            | Self::NothingUnderWay(_) => Exit::Failed,
            _ => Exit::Usage,
        }
    }

    /// Uses the name of a thread in the message instead of its ID.
    pub(super) fn about(self, name: &str) -> Self {
        match self {
            Self::Runtime(runtime::Error::Store(checkpoint::Error::Busy { owner, .. })) => {
                let thread = name.to_owned();
                let who = runtime::Holder::of(&owner).to_string();
                let what = "wait, follow it with `perihelion resume`, or stop it with `perihelion threads cancel`";
                Self::AtWork { thread, who, what }
            }
            Self::Runtime(runtime::Error::Run(runner::Error::Finished { .. })) => {
                Self::Finished(name.to_owned())
            }
            Self::Runtime(runtime::Error::Store(checkpoint::Error::UnknownThread(id)))
                if ThreadId::from_name(name) == (id, Some(name)) =>
            {
                Self::UnknownThread(name.to_owned())
            }
            other => other,
        }
    }

    /// Explains that a question was not submitted because its thread is running.
    pub(super) fn untaken(self) -> Self {
        match self {
            Self::AtWork { thread, who, .. } => {
                let what = "your question was not submitted. Follow the current run with `perihelion resume`, then ask again";
                Self::AtWork { thread, who, what }
            }
            other => other,
        }
    }
}

impl From<demo::Error> for Error {
    fn from(error: demo::Error) -> Self {
        match error {
            demo::Error::Runtime(error) => Self::Runtime(error),
            data => Self::Demo(data),
        }
    }
}

macro_rules! of_runtime {
    ($($kind:ty),+) => {$(
        impl From<$kind> for Error {
            fn from(error: $kind) -> Self {
                Self::Runtime(error.into())
            }
        }
    )+};
}

of_runtime!(checkpoint::Error, config::Error, perihelion_database::Error, runtime::MemoryError);
