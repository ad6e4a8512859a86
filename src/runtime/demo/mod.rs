//! The demo: the whole star on bundled servers, real public-domain data and a scripted model.
//!
//! Enter at [`open`]. Invariant: everything but the model is the real thing; the scripted model is an
//! HTTP endpoint on loopback, and what it writes is put together from what the tools returned.
//! Deliberately absent: any key, any network beyond loopback.

mod analyst;
mod atlas;
mod diamond;
mod documents;
mod hands;
mod reading;
mod script;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Error, Runtime};
use crate::checkpoint::Store;
use crate::config::Settings;
use crate::llm::scripted::{Script, ScriptedModel};
use crate::llm::{ChatModel, OpenAiModel};
use crate::mcp::{Pool, PoolOptions, ServersFile};
use crate::servers::demo_data;
use crate::telemetry::GoesOn;

pub use analyst::QUESTIONS as ANALYST_QUESTIONS;
pub use diamond::DOCUMENTS_QUESTION;
pub use documents::{DOCUMENTS_LAST, DOCUMENTS_TITLE, open_documents};
pub use hands::{HANDS_QUESTION, HANDS_TITLE, open_hands};
pub use script::QUESTION;

pub(super) use atlas::Atlas;

/// Tenant of the demo's threads; it tells a later process that they continue with the scripted model.
pub const TENANT: &str = "demo";

/// Where the demo keeps its data, and how its servers are started.
#[derive(Debug)]
pub struct Options {
    /// Directory of the data set; it is made when it is not there.
    pub home: PathBuf,
    pub pool: PoolOptions,
    /// Whose traces are left until they end.
    pub goes_on: GoesOn,
}

impl Default for Options {
    fn default() -> Self {
        let home = crate::config::data_directory().join("demo");
        Self { home, pool: PoolOptions::default(), goes_on: GoesOn::WithNone }
    }
}

/// Opens the demo's runtime on a store: installs the data set, starts the scripted model, scans the servers.
///
/// # Errors
/// As [`Runtime::open`], and [`Error::Demo`] when the data cannot be written.
pub async fn open(settings: Settings, store: Arc<dyn Store>) -> Result<Runtime, Error> {
    open_with(settings, store, Options::default()).await
}

/// Opens the demo's runtime in another place than the user's data directory.
///
/// # Errors
/// As [`open`].
pub async fn open_with(
    mut settings: Settings,
    store: Arc<dyn Store>,
    Options { home, pool, goes_on }: Options,
) -> Result<Runtime, Error> {
    let data = demo_data::install(&home)
        .await
        .map_err(|source| Error::Demo { path: home.clone(), source })?;
    let server = ScriptedModel::start(Script::new().respond_with(script::respond)).await?;
    settings.models = settings.models.at(server.url(), "scripted");
    let model: Arc<dyn ChatModel> = Arc::new(OpenAiModel::new(&settings.models)?);
    let file = ServersFile::parse(Path::new("(demo)"), &servers(&data), &|_| None)?;
    let pool = Pool::new(file, pool);
    let runtime = Runtime::going_on(settings, model, pool, store, goes_on).await?;
    Ok(runtime.beside(TENANT, server))
}

/// Writes the demo's servers file.
fn servers(data: &demo_data::DemoData) -> String {
    let quote = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
    format!(
        "[mcp_servers.sql]\n\
         description = \"the IANA time zone database as tables: zones, their countries, every change of offset since 1970\"\n\
         command = \"perihelion\"\n\
         args = [\"mcp\", \"sql\", \"--database\", {database}]\n\
         agent = \"tools\"\n\
         default_tools_effect = \"read_only\"\n\n\
         [mcp_servers.timezones]\n\
         description = \"analyses the time zone database: counts, courses over time, charts\"\n\
         command = \"perihelion\"\n\
         args = [\"mcp\", \"sql\", \"--database\", {database}]\n\
         agent = \"analyst\"\n\
         default_tools_effect = \"read_only\"\n\n\
         [mcp_servers.files]\n\
         description = \"the time zone database's own documents: news, theory, commentary by region\"\n\
         command = \"perihelion\"\n\
         args = [\"mcp\", \"files\", \"--root\", {documents}]\n\
         default_tools_effect = \"read_only\"\n",
        database = quote(&data.database),
        documents = quote(&data.documents),
    )
}
