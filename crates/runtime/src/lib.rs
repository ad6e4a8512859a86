//! The assembly of all parts from the settings, and the services over it.
//!
//! Enter at [`Runtime::builder`], and from there at [`Job`], [`Agents`], [`Threads`] and [`Traces`]; the last two need
//! only a store, and [`Accounts`] only a database. Command line, server and worker make their decisions about threads,
//! documents, users and keys here; the lower layers provide data. Invariant: anyone who opens a runtime closes it, and
//! then no child process is left. Deliberately absent: printing, argument parsing, exit codes.

mod accounts;
mod agents;
mod answer;
mod answer_error;
mod assemble;
mod audit;
mod builder;
mod conversation_words;
mod counted;
mod data_set;
pub mod dispatch;
mod documents;
mod error;
mod evaluation;
mod folders;
mod follow;
mod graphs;
mod judge;
pub mod learned;
mod logins;
mod metered;
mod metrics;
mod plugins;
mod report;
mod runs;
mod teams;
mod threads;
mod trace;
mod turns;
mod usage;

pub use accounts::{Accounts, database_exists, is_anybody_known, to_read};
pub use agents::{AgentInfo, Agents, Review, ServerProblem, Survey, review};
pub use answer::Answer;
pub use answer_error::AnswerError;
pub use assemble::{Companions, DEMO_TENANT, Runtime, read_prompts};
pub use audit::{Audit, approval_request};
pub use builder::{Builder, Stage, keyring, open_store, open_store_to_read};
pub use conversation_words::conversation_words;
pub use data_set::open_rows;
pub use documents::{Documents, ExportedDocument, parse_document};
pub use error::Error;
pub use evaluation::{Evaluator, OWN_NAMESPACES};
pub use folders::{Changed, Changes, Folders};
pub use graphs::{
    ALONG, About as AboutGraph, Drawing, Edit, FoldedStep, GraphParts, Graphs, HostedEvent,
    OwnGraph, Screens, Served, ThreadState, Update as WrittenUpdate, Wrote, supervisor_offline,
};
pub use judge::Judge;
pub use learned::{LOCAL_TENANT, open_memory, open_skills};
pub use logins::{LoginMade, LoginUnderWay, log_in, log_out};
pub use metered::{Metered, ModelCost};
pub use metrics::Metrics;
pub use perihelion_database::is_there;
pub use perihelion_documents::{
    COLLECTION as DEFAULT_COLLECTION, Document, DocumentPage, Filters as DocumentFilters, PageAt,
    Query as DocumentQuery, Room as DocumentRoom, Step as AddingStep, Tesseract,
    Weights as SearchWeights, read_judgements,
};
pub use perihelion_ingest::AddedDocument;
pub use perihelion_memory::{
    Entry as MemoryEntry, EntryKind as MemoryKind, Error as MemoryError, Skill, Skills, UserMemory,
};
pub use perihelion_people::{ApiKey, CreatedKey, NewKey, Scope as Permission, User};
pub use perihelion_recall::Scope;
pub use plugins::{
    Environment, Process, Readiness, ReloadAnswer, ReloadListener, ReloadOutcome, Watching,
    processes, request_reload,
};
pub use report::{InterruptView, RunReport, RunStatusView};
pub use runs::Job;
pub use teams::{KeptTeam, TeamStore, find_team, import_team, open_team_store, star_as_team};
pub use threads::{
    ArchiveReport, Cancelled, Holder, Listing, LiveStatus, PruneOptions, PruneReport, Pruned,
    RawState, Removal, StepView, ThreadView, Threads, WaitingApproval,
};
pub use trace::{
    Analysis, AnswerAgain, Replayed, Replayer, Trace, TraceHead, Traces, collector, is_under_way,
    trace_finder,
};
pub use turns::to_its_end;
pub use usage::{Usage, usage};

pub use perihelion_engine::runner::{About, Divergence, LeftOut, ReplayReport};
pub use perihelion_eval as eval;
pub use perihelion_mcp::{
    DiscoveryProgress, Format as ImportFormat, Imported, LoggedIn, LoggedOut, Phase, Reloaded,
    ServerState, Warning, import as import_servers, is_invisible, redact_log,
    schema as servers_schema,
};
pub use perihelion_star::{Team, TeamDesign, TeamMember};
pub use perihelion_telemetry::history::{
    Aspect, Change, Comparison, Difference, Pair, Side, Totals, changes,
};
pub use perihelion_telemetry::{layer as log_layer, place as log_place};
