//! The demo: the whole star on bundled servers, real public-domain data and a scripted model.
//!
//! Enter at [`Options`], which [`Builder::for_demo`](super::Builder::for_demo) takes. Invariant: everything but the model
//! is the real thing; the scripted model is an HTTP endpoint on loopback, and what it writes is put together from what
//! the tools returned.
//! Deliberately absent: any key, any network beyond loopback.

mod analyst;
mod atlas;
mod diamond;
mod documents;
mod hands;
mod reading;
mod script;
mod stage;

use std::path::{Path, PathBuf};

use super::Error;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_llm::scripted::{Script, ScriptedModel};
use perihelion_mcp::{PoolOptions, ServersFile};
use perihelion_servers::demo_data;

pub use analyst::QUESTIONS as ANALYST_QUESTIONS;
pub use diamond::DOCUMENTS_QUESTION;
pub use documents::DOCUMENTS_LAST;
pub use hands::HANDS_QUESTION;
pub use script::QUESTION;

pub(super) use stage::{Companions, Stage};

/// Tenant of the demo's threads; it tells a later process that they continue with the scripted model.
pub const TENANT: &str = "demo";

/// Name of the scripted model, for chats and for vectors.
pub(super) const MODEL: &str = "scripted";

/// The demos that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demo {
    /// The star on tables and documents of the time zone database.
    #[default]
    Star,
    /// Two agents with documents, and an analyst that waits for both.
    Documents,
    /// An analyst counts, a program computes, an API is asked.
    Hands,
}

impl Demo {
    /// Returns the title of its threads, by which a later process knows which demo they are of.
    pub fn title(self) -> &'static str {
        match self {
            Self::Star => "demo",
            Self::Documents => "demo of documents",
            Self::Hands => "demo of hands",
        }
    }

    fn of_title(title: Option<&str>) -> Self {
        let titled = |demo: &Self| title == Some(demo.title());
        [Self::Documents, Self::Hands].into_iter().find(titled).unwrap_or_default()
    }
}

/// Which demo is played, where it keeps its data, and how its servers are started.
#[derive(Debug)]
pub struct Options {
    pub demo: Demo,
    /// Directory of the data set; it is made when it is not there.
    pub home: PathBuf,
    pub pool: PoolOptions,
    /// Hears what is done before it is open, a line at a time.
    pub tell: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        let home = perihelion_settings::config::data_directory().join("demo");
        Self { demo: Demo::default(), home, pool: PoolOptions::default(), tell: |_| {} }
    }
}

impl Options {
    /// Plays a demo where the user's data are kept.
    pub fn of(demo: Demo) -> Self {
        Self { demo, ..Self::default() }
    }

    /// Returns how the demo of a thread is played; none where it is no demo's.
    pub(super) fn of_thread(info: &ThreadInfo) -> Option<Self> {
        (info.tenant == TENANT).then(|| Self::of(Demo::of_title(info.title.as_deref())))
    }
}

/// Sets the stage of a demo: installs its data set and starts its scripted model.
///
/// # Errors
/// [`Error::Demo`] when the data cannot be written or an API not be served, [`Error::Document`] when a document cannot be
/// added.
pub(super) async fn set(options: &Options) -> Result<Stage, Error> {
    match options.demo {
        Demo::Star => set_star(&options.home).await,
        Demo::Documents => documents::set(&options.home, options.tell).await,
        Demo::Hands => hands::set(&options.home).await,
    }
}

async fn set_star(home: &Path) -> Result<Stage, Error> {
    let failed = |source| Error::Demo { path: home.to_owned(), source };
    let data = demo_data::install(home).await.map_err(failed)?;
    let model = ScriptedModel::start(Script::new().respond_with(script::respond)).await?;
    let servers = ServersFile::parse(Path::new("(demo)"), &servers(&data), &|_| None)?;
    Ok(Stage::new(servers, model))
}

/// Writes the demo's servers file.
fn servers(data: &demo_data::DemoData) -> String {
    let quote = |path: &Path| toml_edit::Value::from(path.display().to_string()).to_string();
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
