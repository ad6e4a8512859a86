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

/// Why the runtime could not be opened, or refused a request.
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
    #[error(transparent)]
    People(perihelion_people::Error),
    #[error(transparent)]
    Rows(perihelion_service_rows::Error),
    #[error("threads in memory end with the program; pass --database with a persistent database")]
    InMemory,
    #[error("no threads yet; start one with `perihelion run \"QUESTION\"`")]
    NoThread,
    #[error("thread ID is ambiguous: {name}; use more characters. Matching threads: {ids}")]
    ManyThreads { name: String, ids: String },
    #[error("cannot delete thread {thread}, which is {how}; wait for its end, or pass --force")]
    UnderWay { thread: ThreadId, how: String },
    /// A document could not be added; `class` is the reason in one word.
    #[error("cannot add {path}: {reason}")]
    Document { path: String, class: String, reason: String },
    #[error("cannot create an HTTP client for the embeddings endpoint: {}", perihelion_embeddings::cause(.0))]
    Client(reqwest::Error),
    #[error("cannot change the state: {0}")]
    Change(#[source] perihelion_engine::checkpoint::Cause),
    #[error(
        "this program does not have the graph {0}, so it cannot run its threads; use the program that serves {0}"
    )]
    UnknownGraph(String),
    #[error(
        "cannot replay thread {thread}: nodes of the hosted graph {graph} record no calls; look at it with `threads show`"
    )]
    NotReplayed { thread: ThreadId, graph: String },
    #[error(
        "a graph cannot be registered under this name: {0}; use the name that the graph was built with"
    )]
    GraphName(String),
    #[error("no collector configured; pass --endpoint URL, or set traces.otlp_endpoint")]
    NoCollector,
    #[error(transparent)]
    Graph(#[from] BuildError),
    /// A server could not be looked at.
    #[error(transparent)]
    Server(mcp::Error),
    #[error("unknown team: {name}{hint}; run `perihelion teams` to list teams")]
    NoTeam { name: String, hint: String },
    #[error("invalid team design: {0}")]
    TeamDesign(String),
    #[error("no MCP servers to design a team with; run `perihelion agents` for details")]
    NoServers,
    #[error("teams are not available in the demo or with threads in memory")]
    NoTeams,
    #[error("unknown or disabled MCP server: {0}; run `perihelion agents` to list servers")]
    NoServer(String),
    /// A server marked `required` could not be scanned.
    #[error("required MCP server is not available: {0}; fix it or set required = false")]
    RequiredServer(String),
    #[error("servers file does not exist: {}; create it, or pass another file with --servers", .0.display())]
    NoServersFile(PathBuf),
    #[error("servers file was deleted: {}; its servers are still running. Create an empty file to stop them", .0.display())]
    ServersFileGone(PathBuf),
}

/// Takes an error apart that can hold one of ours, so that each is found in one place.
macro_rules! unwrapped {
    ($($kind:ty { $inner:ident => $own:ident, _ => $other:ident })+) => {$(
        impl From<$kind> for Error {
            fn from(error: $kind) -> Self {
                type Of = $kind;
                match error {
                    Of::$inner(error) => Self::$own(error),
                    other => Self::$other(other),
                }
            }
        }
    )+};
}

unwrapped! {
    runner::Error { Store => Store, _ => Run }
    perihelion_people::Error { Database => Database, _ => People }
    perihelion_service_rows::Error { Database => Database, _ => Rows }
    telemetry::Error { Store => Store, _ => Trace }
    mcp::Error { UnknownServer => NoServer, _ => Server }
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

impl Error {
    /// Makes the error that no document has this id or path.
    pub fn unknown_document(given: &str) -> Self {
        perihelion_documents::Error::Unknown(given.to_owned()).into()
    }

    fn of_store(&self) -> Option<&checkpoint::Error> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }

    /// Returns whether the database could not be used for now, so that trying again soon may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Database(error)
            | Self::Documents(perihelion_documents::Error::Database(error))
            | Self::Experience(experience::Error::Database(error)) => error.is_passing(),
            other => other.of_store().is_some_and(checkpoint::Error::is_passing),
        }
    }

    /// Returns whether the database could not be reached or did not answer, which can be temporary.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_unreachable(),
            Self::Database(error) => error.is_unreachable(),
            _ => false,
        }
    }

    pub fn is_claimed(&self) -> bool {
        matches!(self.of_store(), Some(checkpoint::Error::Busy { .. }))
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
                | runner::Error::Unfinished { .. }
                | runner::Error::UnknownNode { .. }
                | runner::Error::WrongGraph { .. },
            ) => true,
            Self::Model(llm::Error::NotConfigured | llm::Error::Prompt { .. }) => true,
            _ => false,
        }
    }
}

macro_rules! of_experience {
    ($($kind:ty),+) => {$(
        impl From<$kind> for Error {
            fn from(error: $kind) -> Self {
                Self::Experience(error.into())
            }
        }
    )+};
}

of_experience!(perihelion_memory::Error, perihelion_recall::Error);

#[cfg(test)]
mod tests {
    use perihelion_database::Error::Locked;

    use super::*;

    #[test]
    fn a_locked_database_is_passing_whatever_part_met_it() {
        let locked = || Locked { url: "sqlite:threads.db".to_owned() };
        for error in [
            Error::Database(locked()),
            Error::Store(locked().into()),
            Error::Documents(locked().into()),
            Error::Experience(locked().into()),
        ] {
            assert!(error.is_passing(), "{error:?}");
        }
    }
}
