//! The demo: the supervisor graph on bundled servers, real public-domain data and a scripted model.
//!
//! Enter at [`set`], whose stage [`Builder::on_stage`] takes. Invariant: only the model is scripted. It is an HTTP endpoint
//! on loopback, and its texts are built from tool results. Deliberately absent: keys, and networks beyond loopback.

mod analyst;
mod atlas;
mod diamond;
mod documents;
mod hands;
mod python;
mod reading;
mod script;

use std::path::{Path, PathBuf};

use self::atlas::Atlas;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_llm::scripted::{RecordedRequest, Reply, Script, ScriptedModel};
use perihelion_mcp::{PoolOptions, ServersFile};
use perihelion_runtime::{
    Builder, Companions, DEMO_TENANT, Error as RuntimeError, Runtime, Stage, TeamDesign, TeamMember,
};
use perihelion_servers::demo_data::{self, DemoData};

pub use analyst::QUESTIONS as ANALYST_QUESTIONS;
pub use diamond::DOCUMENTS_QUESTION;
pub use documents::DOCUMENTS_LAST;
pub use hands::HANDS_QUESTION;
pub use python::{PythonDemo, python};
pub use script::QUESTION;

/// Why a demo could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error("cannot write the demo's data to {}: {source}", path.display())]
    Data { path: PathBuf, source: std::io::Error },
}

type Respond = fn(&RecordedRequest) -> Option<Reply>;

pub(super) const MODEL: &str = "scripted";

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

/// The selected demo, the location of its data, and how its servers are started.
#[derive(Debug)]
pub struct Options {
    pub demo: Demo,
    /// Directory of the data set; it is made when it is not there.
    pub home: PathBuf,
    pub pool: PoolOptions,
    /// Receives the preparation steps before it is open, a line at a time.
    pub tell: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        let home = perihelion_settings::config::data_directory().join("demo");
        Self { demo: Demo::default(), home, pool: PoolOptions::default(), tell: |_| {} }
    }
}

impl Options {
    /// Runs a demo in the user's data directory.
    pub fn of(demo: Demo) -> Self {
        Self { demo, ..Self::default() }
    }

    /// Returns the demo of a thread; `None` for another thread.
    fn of_thread(info: &ThreadInfo) -> Option<Self> {
        (info.tenant == DEMO_TENANT).then(|| Self::of(Demo::of_title(info.title.as_deref())))
    }
}

/// Installs the data of a demo, and starts its scripted model.
///
/// # Errors
/// [`Error::Data`] if the data cannot be written, [`Error::Runtime`] if a document cannot be added.
pub async fn set(options: &Options) -> Result<Stage, Error> {
    let home = &options.home;
    let failed = |source| Error::Data { path: home.clone(), source };
    let data = demo_data::install(home).await.map_err(failed)?;
    let (respond, pace_ms): (Respond, u64) = match options.demo {
        Demo::Star => (script::respond, 150),
        Demo::Documents => (diamond::respond, 100),
        Demo::Hands => (hands::respond, 100),
    };
    // So that a person can follow.
    let paced = move |request: &RecordedRequest| Some(respond(request)?.delay_ms(pace_ms));
    // Nobody reads the requests, and a demo can run for days.
    let script = Script::new().respond_with(paced).keep_requests(0);
    let model = ScriptedModel::start(script).await;
    let model = model.map_err(RuntimeError::from)?;
    let model_url = model.url().to_owned();
    let path = |name: &str| (name == "PATH").then(|| std::env::var(name).ok()).flatten();
    let mut companions: Companions = Box::new(());
    let servers = match options.demo {
        Demo::Star => servers(&data),
        Demo::Documents => documents::prepared(home, &data, &model_url, options.tell).await?,
        Demo::Hands => {
            let atlas = Atlas::start().await.map_err(failed)?;
            let spec = home.join("atlas.json");
            std::fs::write(&spec, atlas::DESCRIPTION).map_err(failed)?;
            let servers = hands::servers(&data, &spec, &atlas.url);
            companions = Box::new(atlas);
            servers
        }
    };
    let servers = ServersFile::parse(Path::new("(demo)"), &servers, &path);
    Ok(Stage {
        model_url,
        model: MODEL,
        servers: servers.map_err(RuntimeError::from)?,
        pool: options.pool.clone(),
        companions: Box::new((model, companions)),
    })
}

/// Stores the team of the demo, unless it is there.
///
/// # Errors
/// [`RuntimeError`] if the teams cannot be read or written.
pub async fn add_team(runtime: &Runtime) -> Result<(), RuntimeError> {
    let member = |name: &str, role: &str, goal: &str, servers: &[&str]| TeamMember {
        name: name.to_owned(),
        role: role.to_owned(),
        goal: goal.to_owned(),
        servers: servers.iter().map(|&server| server.to_owned()).collect(),
    };
    let design = TeamDesign {
        name: "time_desk".to_owned(),
        description: "Answers questions about time zones with figures and their history."
            .to_owned(),
        agents: vec![
            member("analyst", "counts", "Counts zones and clock changes.", &["timezones"]),
            member("historian", "reads commentary", "Finds why clocks changed.", &["files"]),
        ],
    };
    let known = runtime.team_store(DEMO_TENANT)?.list().await?;
    if known.iter().all(|kept| kept.team.design.name != design.name) {
        runtime.save_team(DEMO_TENANT, design).await?;
    }
    Ok(())
}

/// Adds the stage of the demo to a builder that continues a thread of a demo.
///
/// # Errors
/// As [`set`], and [`RuntimeError::Store`] if the thread is unknown.
pub async fn continued(mut builder: Builder<'_>) -> Result<Builder<'_>, Error> {
    let info = builder.continued().await?;
    match info.as_ref().and_then(Options::of_thread) {
        Some(options) => Ok(builder.on_stage(set(&options).await?)),
        None => Ok(builder),
    }
}

/// Writes the table of a bundled server that only reads; `more` are further lines of it.
fn table(name: &str, description: &str, args: &[&str], more: &str) -> String {
    let args = toml_edit::Value::from_iter(["mcp"].iter().chain(args).copied());
    format!(
        "[mcp_servers.{name}]
\
         description = {}
\
         command = \"perihelion\"
\
         args = {args}
\
         default_tools_effect = \"read_only\"
\
         {more}

",
        toml_edit::Value::from(description)
    )
}

fn timezones(data: &DemoData) -> String {
    let database = data.database.display().to_string();
    let about = "analyses the time zone database: counts, courses over time, charts";
    table("timezones", about, &["sql", "--database", &database], "agent = \"analyst\"")
}

fn servers(data: &DemoData) -> String {
    let database = data.database.display().to_string();
    let documents = data.documents.display().to_string();
    let tables = "the IANA time zone database as tables: zones, their countries, every change of offset since 1970";
    let texts = "the time zone database's own documents: news, theory, commentary by region";
    [
        table("sql", tables, &["sql", "--database", &database], "agent = \"tools\""),
        timezones(data),
        table("files", texts, &["files", "--root", &documents], ""),
    ]
    .concat()
}
