//! Why a command ended without doing what it was asked, and the exit codes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use perihelion_engine::checkpoint;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime as runtime;
use perihelion_servers as servers;
use perihelion_service as service;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// Wrong usage or configuration.
    Usage,
    /// The run waits for a person.
    Waiting,
    /// Ended at once by a second signal.
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

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    #[error(transparent)]
    Server(#[from] servers::Error),
    #[error("whose memory? name the user with --user NAME")]
    NoUser,
    #[error("the log filter cannot be read: {reason}: {filter}")]
    Log { filter: String, reason: String },
    #[error("the question cannot be read from standard input: {0}")]
    Input(std::io::Error),
    #[error("standard output cannot be written: {0}")]
    Output(std::io::Error),
    #[error("cannot use {}: {reason}", path.display())]
    Suite { path: PathBuf, reason: String },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot use the design of a team in {}: {reason}", path.display())]
    Design { path: PathBuf, reason: String },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("signals cannot be listened to: {0}")]
    Signals(std::io::Error),
    #[error("the program's threads cannot be started: {0}")]
    Threads(std::io::Error),
    #[error("unknown agent: {name}{hint}; `perihelion agents` lists them")]
    UnknownAgent { name: String, hint: String },
    #[error("the MCP server {server} gives no agent: {problem}")]
    NoAgent { server: String, problem: String },
    #[error("unknown thread: {0}; `perihelion threads` lists the known ones")]
    UnknownThread(String),
    #[error("{who} is working on the thread {thread}; {what}")]
    AtWork { thread: String, who: String, what: &'static str },
    #[error("cannot use the schema in {}: {reason}", path.display())]
    Schema { path: PathBuf, reason: String },
    #[error("nothing to change: say --set FIELD=VALUE")]
    NothingToSet,
    #[error("nothing is under way on the thread {0}, so there is nothing to cancel")]
    NothingUnderWay(String),
    #[error("there already: {0}; say --force to replace what stands there")]
    Exists(String),
    #[error("nobody is there to confirm; say --yes to {what}: {name}")]
    Unconfirmed { what: &'static str, name: String },
    #[error(
        "without authentication only a loopback address is listened on, such as 127.0.0.1:16686: {0}"
    )]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {addr}: {source}; another --addr may be free")]
    Listen { addr: SocketAddr, source: std::io::Error },
    #[error("cannot serve metrics on {addr}: {source}; another address for --metrics may be free")]
    ServeMetrics { addr: SocketAddr, source: std::io::Error },
    #[error("there is no index.html in the directory of the Jaeger UI: {}", .0.display())]
    NoJaegerUi(PathBuf),
    #[error(
        "beyond loopback callers must prove who they are: make a key with `perihelion keys create NAME`, or set PERIHELION_SERVE_TOKEN, or listen on 127.0.0.1, not on: {0}"
    )]
    Unprotected(SocketAddr),
    #[error("the password cannot be read from standard input: it must be one line")]
    NoPassword,
    #[error(
        "nothing of this id waits for an answer; it was answered, ran out, or was never asked: {0}; `perihelion approvals` lists what waits"
    )]
    NotWaiting(String),
    #[error(transparent)]
    Serve(perihelion_http::Error),
    #[error("no HTTP client can be made: {0}")]
    Client(reqwest::Error),
    #[error(transparent)]
    Service(service::Error),
    #[error("--result only goes with --outcome done")]
    StrayResult,
    #[error("--run can be given twice at most: for A and for B")]
    ManyRuns,
    #[error(
        "nothing is to be pruned: say --older-than, --keep or --keep-steps, or set them in the [retention] section of the settings"
    )]
    NothingToPrune,
    #[error(
        "nothing is to be pruned: say --older-than, or set max_age in the [documents] section of the settings"
    )]
    NoDocumentAge,
    #[error("threads that could not be shortened: {0}; the others were")]
    NotShortened(usize),
    /// Two threads could not be compared.
    #[error(transparent)]
    CannotCompare(Box<Error>),
}

impl Error {
    /// Returns the exit code of this failure.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Runtime(error) if !error.is_usage() => Exit::Failed,
            Self::Server(_)
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
            | Self::NotShortened(_)
            | Self::AtWork { .. }
            | Self::NothingUnderWay(_) => Exit::Failed,
            _ => Exit::Usage,
        }
    }
}

impl Error {
    /// Speaks of a thread by the name it was called, where that is not its id.
    pub(super) fn about(self, name: &str) -> Self {
        match self {
            Self::Runtime(runtime::Error::Store(checkpoint::Error::Busy { owner, .. })) => {
                let thread = name.to_owned();
                let who = runtime::Holder::of(&owner).to_string();
                let what = "wait for it, follow it with `perihelion resume`, or end it with `perihelion threads cancel`";
                Self::AtWork { thread, who, what }
            }
            Self::Runtime(runtime::Error::Store(checkpoint::Error::UnknownThread(id)))
                if ThreadId::from_name(name) == (id, Some(name)) =>
            {
                Self::UnknownThread(name.to_owned())
            }
            other => other,
        }
    }
}

impl Error {
    /// Speaks of a question that was not taken, because somebody is at work on its thread.
    pub(super) fn untaken(self, name: &str) -> Self {
        match self.about(name) {
            Self::AtWork { thread, who, .. } => {
                let what = "the question was not taken; follow the thread with `perihelion resume`, and ask again then";
                Self::AtWork { thread, who, what }
            }
            other => other,
        }
    }
}

impl From<checkpoint::Error> for Error {
    fn from(error: checkpoint::Error) -> Self {
        Self::Runtime(error.into())
    }
}
