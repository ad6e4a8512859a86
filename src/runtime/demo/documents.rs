//! The demo of documents: two agents with a collection each, and an analyst that stands on what both found.
//!
//! The documents are the time zone database's own, typeset, so that there are pages to cite. They are added as `perihelion documents add` does,
//! on a durable thread each, described and embedded by the scripted model, to a database of the demo; what that model writes is in
//! [`diamond`](super::diamond).

use std::path::Path;
use std::sync::Arc;

use super::analyst::AGENT;
use super::diamond::{self, RELEASES, THEORY};
use super::{Options, TENANT};
use crate::checkpoint::Store;
use crate::config::{Overrides, Settings};
use crate::llm::scripted::{Script, ScriptedModel};
use crate::llm::{ChatModel, OpenAiModel};
use crate::mcp::{Pool, ServersFile};
use crate::runtime::{Documents, Error, Runtime};
use crate::servers::demo_data::{self, DemoData};

/// Title of the demo's threads, by which a later process knows which demo they are of.
pub const DOCUMENTS_TITLE: &str = "demo of documents";

/// The agent that waits for the two others.
pub const DOCUMENTS_LAST: &str = AGENT;

/// Name of the scripted model, for chats and for vectors.
const MODEL: &str = "scripted";

/// Where the documents are, and who embeds a question to them.
struct Kept {
    database: String,
    model_url: String,
}

/// Opens the runtime of the demo of documents; they are added first, and unchanged ones cost nothing.
///
/// # Errors
/// As [`Runtime::open`], [`Error::Demo`] when the data cannot be written, and [`Error::Document`] when one cannot be added.
pub async fn open_documents(
    mut settings: Settings,
    store: Arc<dyn Store>,
    Options { home, pool, goes_on }: Options,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<Runtime, Error> {
    let failed = |source| Error::Demo { path: home.clone(), source };
    let data = demo_data::install(&home).await.map_err(failed)?;
    let server = ScriptedModel::start(Script::new().respond_with(diamond::respond)).await?;
    let kept = Kept {
        database: format!("sqlite:{}", home.join("documents.db").display()),
        model_url: server.url().to_owned(),
    };
    add(&data, &kept, tell).await?;
    settings.models = settings.models.at(server.url(), MODEL);
    let model: Arc<dyn ChatModel> = Arc::new(OpenAiModel::new(&settings.models)?);
    let file = ServersFile::parse(Path::new("(demo)"), &servers(&data, &kept), &|_| None)?;
    let pool = Pool::new(file, pool);
    let runtime = Runtime::going_on(settings, model, pool, store, goes_on).await?;
    Ok(runtime.beside(TENANT, server))
}

impl Kept {
    /// Returns settings in which nothing of the user's stands: the demo's model, and defaults.
    fn settings(&self) -> Result<Settings, Error> {
        let env = |name: &str| match name {
            "OPENAI_BASE_URL" => Some(self.model_url.clone()),
            "OPENAI_MODEL" | "PERIHELION_EMBEDDINGS_MODEL" => Some(MODEL.to_owned()),
            _ => None,
        };
        let database = Some(self.database.clone());
        Ok(Settings::load(Overrides { database, ..Overrides::default() }, None, &env)?)
    }
}

/// Adds the documents: releases for one agent, theory for the other.
async fn add(
    data: &DemoData,
    kept: &Kept,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), Error> {
    // The tenant whose calls the servers are told that they answer.
    let documents = Documents::open(&kept.settings()?).await?.for_tenant(TENANT)?;
    let papers =
        [(RELEASES, "releases-2013.pdf"), (RELEASES, "releases-2018.pdf"), (THEORY, "theory.pdf")];
    for (collection, name) in papers {
        let path = data.papers.join(name);
        let added = documents.add(&path, collection, None, Arc::new(|_| {})).await?;
        if !added.unchanged {
            let document = &added.document;
            tell(&format!(
                "added {}: {} pieces, {} embedded",
                document.title, document.chunks, added.embedded
            ));
        }
    }
    documents.close().await;
    Ok(())
}

fn servers(data: &DemoData, kept: &Kept) -> String {
    let quote = |text: &dyn std::fmt::Display| toml::Value::String(text.to_string()).to_string();
    let documents = |name: &str, about: &str| {
        format!(
            "[mcp_servers.{name}]\n\
             description = \"{about}\"\n\
             command = \"perihelion\"\n\
             args = [\"mcp\", \"documents\", \"--database\", {}, \"--collection\", \"{name}\", \"--read-only\"]\n\
             env = {{ PERIHELION_EMBEDDINGS_URL = {}, PERIHELION_EMBEDDINGS_MODEL = \"{MODEL}\" }}\n\
             default_tools_effect = \"read_only\"\n\
             agent = \"documents\"\n\n",
            quote(&kept.database),
            quote(&kept.model_url)
        )
    };
    format!(
        "{}{}[mcp_servers.timezones]\n\
         description = \"analyses the time zone database: counts, courses over time, charts\"\n\
         command = \"perihelion\"\n\
         args = [\"mcp\", \"sql\", \"--database\", {}]\n\
         agent = \"analyst\"\n\
         default_tools_effect = \"read_only\"\n",
        documents(RELEASES, "the time zone database's announcements of 2013 and 2018"),
        documents(THEORY, "how the time zone database is made"),
        quote(&data.database.display()),
    )
}
