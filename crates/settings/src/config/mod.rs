//! Settings: the source of each value, and errors that show the line and the nearest valid key.
//!
//! Enter at [`Settings::load`], or at [`strict::parse`] for another file. Precedence everywhere:
//! option, environment, file, default; an environment variable that is set but empty counts as unset.
//! Invariant: a secret (API key, database password) never shows in `Debug` or in an error.
//! Deliberately absent: any reading of the process environment, which the caller passes in.

mod apis;
mod embeddings;
mod encryption;
mod models;
mod prices;
mod resolve;
mod retention;
mod sections;
mod serve;
mod settings;
pub mod strict;
pub mod tls;
mod traces;
pub mod variables;

pub use apis::{Api, Input, Inputs};
pub use embeddings::Embeddings;
pub use encryption::{Encryption, EncryptionKey, NoKey};
pub use models::{AGENT_PREFIX, JsonMode, ModelSettings, Models, Protocol, RoleSettings, Roles};
pub use prices::{Price, Prices, nano_usd};
pub use resolve::Key;
pub use retention::{Age, Archive, DocumentSettings, OtherParser, Retention};
pub use sections::{
    DatabaseUrl, Events, Founding, Limits, Log, LogFormat, PinMode, Prompts, Servers, Store, Swarm,
    TaintRule, Trust, Worker, cache_directory, data_directory, processes_directory,
};
pub use serve::{Approvals, IssuerUrl, Jwt, Names, Oidc, Permission, Secret, Serve};
pub use settings::{Overrides, RoleModel, Settings};
pub use strict::{Error, Invalid};
pub use traces::{
    Collector, Compression, Metrics, Temporality, TraceProtocol, TraceScope, Traces, Transport,
    check_collector,
};
