//! Why the runtime refused, and whose fault it is.

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
    /// Users and keys cannot be changed so.
    #[error(transparent)]
    People(perihelion_people::Error),
    /// What is kept beside the threads cannot be read or written.
    #[error(transparent)]
    Rows(perihelion_service_rows::Error),
    #[error(
        "the threads are in memory alone; name a database that outlives the program with --database"
    )]
    InMemory,
    /// There is no newest thread to take.
    #[error("there is no thread here; `perihelion run \"QUESTION\"` makes one")]
    NoThread,
    /// A part of an id fits several threads.
    #[error(
        "several threads have ids that begin or end with {name}; say more of the one that is meant: {ids}"
    )]
    ManyThreads { name: String, ids: String },
    /// A thread that is to be deleted is at work, or is to be.
    #[error(
        "the thread {thread} is {how}; wait for its end, or say --force to delete it during its run"
    )]
    UnderWay { thread: ThreadId, how: String },
    /// A document could not be added; `class` says why in one word.
    #[error("cannot add {path}: {reason}")]
    Document { path: String, class: String, reason: String },
    #[error("no HTTP client can be made for the embeddings endpoint: {0}")]
    Client(reqwest::Error),
    /// A change of a state that cannot be made.
    #[error("the state cannot be changed so: {0}")]
    Change(String),
    /// There is nowhere to send traces to.
    #[error("no collector is named; say --endpoint URL, or set traces.otlp_endpoint")]
    NoCollector,
    #[error(transparent)]
    Graph(#[from] BuildError),
    /// A server could not be looked at.
    #[error(transparent)]
    Server(mcp::Error),
    /// There is no such team.
    #[error("there is no team of this name{hint}; `perihelion teams` lists them: {name}")]
    NoTeam { name: String, hint: String },
    /// A design that cannot be kept.
    #[error("the team's design is not acceptable: {0}")]
    TeamDesign(String),
    /// A team is made of servers.
    #[error(
        "there is no MCP server to make a team of; `perihelion agents` shows what is wrong with those that are declared"
    )]
    NoServers,
    /// The process was opened without a place for teams.
    #[error("teams are not kept here: the demo and threads in memory have none")]
    NoTeams,
    /// There is no such server, or it is switched off.
    #[error(
        "no enabled MCP server has this name in the servers file: {0}; `perihelion agents` lists them"
    )]
    NoServer(String),
    /// A server marked `required` could not be scanned.
    #[error("a required MCP server is not there: {0}; fix it or set required = false")]
    RequiredServer(String),
    /// The demo's data could not be written.
    #[error("cannot install the demo's data under {}: {source}", path.display())]
    Demo { path: PathBuf, source: std::io::Error },
    /// The servers file that was named does not exist.
    #[error("the servers file does not exist: {}; write one, or name another with --servers", .0.display())]
    NoServersFile(PathBuf),
    /// The servers file that was read before is not there any longer.
    #[error("the servers file is gone, and its servers stay; write an empty one to be rid of them: {}", .0.display())]
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
            Self::NoThread | Self::ManyThreads { .. } => true,
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
