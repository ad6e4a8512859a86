//! Errors of the runtime, and which of them are usage errors.

use std::path::PathBuf;

use super::answer_error::AnswerError;
use crate::learned as experience;
use perihelion_engine::checkpoint;
use perihelion_engine::graph::BuildError;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner;
use perihelion_ingest as ingest;
use perihelion_llm as llm;
use perihelion_mcp as mcp;
use perihelion_settings::config;
use perihelion_star::RequestError;
use perihelion_telemetry as telemetry;

/// Why the runtime could not be opened, or refused what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Store(#[from] checkpoint::Error),
    #[error(transparent)]
    Model(#[from] llm::Error),
    #[error(transparent)]
    Run(runner::Error),
    #[error(transparent)]
    Experience(#[from] experience::Error),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Trace(telemetry::Error),
    #[error(transparent)]
    Traces(#[from] telemetry::otlp::Error),
    #[error(transparent)]
    Metrics(#[from] telemetry::metrics::Error),
    #[error(transparent)]
    Documents(#[from] perihelion_documents::Error),
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    /// A change of users or keys was rejected.
    #[error(transparent)]
    People(perihelion_people::Error),
    /// Rows beside the threads cannot be read or written.
    #[error(transparent)]
    Rows(perihelion_service_rows::Error),
    #[error("threads in memory end with the program; pass --database with a persistent database")]
    InMemory,
    /// No newest thread exists.
    #[error("no threads yet; start one with `perihelion run \"QUESTION\"`")]
    NoThread,
    /// Part of an ID matches several threads.
    #[error("thread ID is ambiguous: {name}; use more characters. Matching threads: {ids}")]
    ManyThreads { name: String, ids: String },
    /// A thread to delete is running or queued.
    #[error("cannot delete thread {thread}, which is {how}; wait for its end, or pass --force")]
    UnderWay { thread: ThreadId, how: String },
    /// A document could not be added; `class` is the reason in one word.
    #[error("cannot add {path}: {reason}")]
    Document { path: String, class: String, reason: String },
    #[error("cannot create an HTTP client for the embeddings endpoint: {}", perihelion_embeddings::cause(.0))]
    Client(reqwest::Error),
    /// A change of a state that cannot be made.
    #[error("cannot change the state: {0}")]
    Change(String),
    /// A thread of a graph that this program does not have.
    #[error(
        "this program does not have the graph {0}, so it cannot run its threads; use the program that serves {0}"
    )]
    UnknownGraph(String),
    /// Two names of a graph differ, or the name is taken.
    #[error(
        "a graph cannot be registered under this name: {0}; use the name that the graph was built with"
    )]
    GraphName(String),
    /// There is nowhere to send traces to.
    #[error("no collector configured; pass --endpoint URL, or set traces.otlp_endpoint")]
    NoCollector,
    #[error(transparent)]
    Graph(#[from] BuildError),
    /// A server could not be looked at.
    #[error(transparent)]
    Server(mcp::Error),
    /// There is no such team.
    #[error("unknown team: {name}{hint}; run `perihelion teams` to list teams")]
    NoTeam { name: String, hint: String },
    /// A design that cannot be kept.
    #[error("invalid team design: {0}")]
    TeamDesign(String),
    /// A team is made of servers.
    #[error("no MCP servers to design a team with; run `perihelion agents` for details")]
    NoServers,
    /// The process was opened without a place for teams.
    #[error("teams are not available in the demo or with threads in memory")]
    NoTeams,
    /// There is no such server, or it is switched off.
    #[error("unknown or disabled MCP server: {0}; run `perihelion agents` to list servers")]
    NoServer(String),
    /// A server marked `required` could not be scanned.
    #[error("required MCP server is not available: {0}; fix it or set required = false")]
    RequiredServer(String),
    /// The servers file that was named does not exist.
    #[error("servers file does not exist: {}; create it, or pass another file with --servers", .0.display())]
    NoServersFile(PathBuf),
    /// The servers file that was read before is not there any longer.
    #[error("servers file was deleted: {}; its servers are still running. Create an empty file to stop them", .0.display())]
    ServersFileGone(PathBuf),
}

impl From<runner::Error> for Error {
    fn from(error: runner::Error) -> Self {
        match error {
            runner::Error::Store(error) => Self::Store(error),
            other => Self::Run(other),
        }
    }
}

impl From<perihelion_people::Error> for Error {
    fn from(error: perihelion_people::Error) -> Self {
        match error {
            perihelion_people::Error::Database(error) => Self::Database(error),
            other => Self::People(other),
        }
    }
}

impl From<perihelion_service_rows::Error> for Error {
    fn from(error: perihelion_service_rows::Error) -> Self {
        match error {
            perihelion_service_rows::Error::Database(error) => Self::Database(error),
            other => Self::Rows(other),
        }
    }
}

impl From<ingest::Error> for Error {
    fn from(error: ingest::Error) -> Self {
        match error {
            ingest::Error::Document { path, class, reason } => {
                Self::Document { path, class, reason }
            }
            ingest::Error::Documents(error) => error.into(),
            ingest::Error::Graph(error) => error.into(),
            ingest::Error::Run(error) => error.into(),
            ingest::Error::Store(error) => error.into(),
            ingest::Error::Model(error) => error.into(),
        }
    }
}

impl From<telemetry::Error> for Error {
    fn from(error: telemetry::Error) -> Self {
        match error {
            telemetry::Error::Store(error) => Self::Store(error),
            other => Self::Trace(other),
        }
    }
}

impl Error {
    /// Makes the error that no document has this id or path.
    pub fn unknown_document(given: &str) -> Self {
        perihelion_documents::Error::Unknown(given.to_owned()).into()
    }

    /// Returns whether the thread itself is in the way, so that trying again soon cannot help.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Store(error) | Self::Run(runner::Error::Store(error)) => error.is_of_thread(),
            _ => true,
        }
    }

    /// Returns whether the database could not be used for now, so that trying again soon may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) | Self::Run(runner::Error::Store(error)) => error.is_passing(),
            Self::Database(error) => error.is_passing(),
            _ => false,
        }
    }

    /// Returns whether the database could not be reached, which may pass by itself.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_unreachable(),
            Self::Database(error) => {
                matches!(error, perihelion_database::Error::Unreachable { .. })
            }
            _ => false,
        }
    }

    /// Returns whether somebody else holds the thread for now.
    pub fn is_claimed(&self) -> bool {
        let busy = |error: &checkpoint::Error| matches!(error, checkpoint::Error::Busy { .. });
        match self {
            Self::Store(error) | Self::Run(runner::Error::Store(error)) => busy(error),
            _ => false,
        }
    }

    /// Returns whether the caller's input or configuration is to blame (exit code 2).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) | Self::Request(_) | Self::Answer(_) | Self::NoServersFile(_) => true,
            Self::ServersFileGone(_) => true,
            Self::NoCollector | Self::NoServer(_) | Self::Change(_) => true,
            Self::NoThread | Self::ManyThreads { .. } | Self::UnknownGraph(_) => true,
            Self::People(_) | Self::InMemory => true,
            Self::NoTeam { .. } | Self::TeamDesign(_) | Self::NoServers => true,
            Self::Trace(_) | Self::Traces(telemetry::otlp::Error::Setup(_)) => true,
            Self::Store(error) => matches!(
                error,
                checkpoint::Error::UnknownThread(_)
                    | checkpoint::Error::ThreadExists(_)
                    | checkpoint::Error::NoDatabase { .. }
                    | checkpoint::Error::Import(_)
                    | checkpoint::Error::UnknownStep { .. }
                    | checkpoint::Error::UnknownRun { .. }
                    | checkpoint::Error::Keys(_)
                    | checkpoint::Error::NoKey { .. }
                    | checkpoint::Error::WrongKey { .. }
                    | checkpoint::Error::Unsealed { .. }
                    | checkpoint::Error::UnknownInterrupt(_)
                    | checkpoint::Error::InterruptClosed(_)
            ),
            Self::Run(
                runner::Error::Finished { .. }
                | runner::Error::NeverAsked { .. }
                | runner::Error::Unfinished { .. },
            ) => true,
            Self::Model(llm::Error::NotConfigured | llm::Error::Prompt { .. }) => true,
            _ => false,
        }
    }
}

impl From<perihelion_memory::Error> for Error {
    fn from(error: perihelion_memory::Error) -> Self {
        Self::Experience(error.into())
    }
}

impl From<perihelion_recall::Error> for Error {
    fn from(error: perihelion_recall::Error) -> Self {
        Self::Experience(error.into())
    }
}
