//! The documents demo: two agents with a collection each, and an analyst that uses the findings of both.
//!
//! The documents are the time zone database's own, typeset, so that there are pages to cite. They are added as
//! `perihelion documents add` does, each on a durable thread, described and embedded by the scripted model, to a
//! database of the demo; that model's texts are in [`diamond`](super::diamond).

use std::path::Path;
use std::sync::Arc;

use super::analyst::AGENT;
use super::diamond::{RELEASES, THEORY};
use super::{MODEL, table, timezones};
use perihelion_runtime::{DEMO_TENANT, Documents, Error};
use perihelion_servers::demo_data::DemoData;
use perihelion_settings::config::{Overrides, Settings};

/// The agent that waits for the two other ones.
pub const DOCUMENTS_LAST: &str = AGENT;

struct Kept {
    database: String,
    model_url: String,
}

/// Adds the documents, and returns the servers file. Unchanged documents are not added again.
pub(super) async fn prepared(
    home: &Path,
    data: &DemoData,
    model_url: &str,
    tell: fn(&str),
) -> Result<String, Error> {
    let kept = Kept {
        database: format!("sqlite:{}", home.join("documents.db").display()),
        model_url: model_url.to_owned(),
    };
    add(data, &kept, tell).await?;
    Ok(servers(data, &kept))
}

impl Kept {
    /// Returns settings without those of the user: the demo's model, and defaults.
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
async fn add(data: &DemoData, kept: &Kept, tell: fn(&str)) -> Result<(), Error> {
    // The tenant for which the servers answer calls.
    let documents = Documents::open(&kept.settings()?).await?.for_tenant(DEMO_TENANT)?;
    let papers =
        [(RELEASES, "releases-2013.pdf"), (RELEASES, "releases-2018.pdf"), (THEORY, "theory.pdf")];
    for (collection, name) in papers {
        let path = data.papers.join(name);
        let added = documents.add(&path, collection, None, Arc::new(|_| {})).await?;
        if !added.unchanged {
            let document = &added.document;
            tell(&format!(
                "added {}: {} chunks, {} embedded",
                document.title, document.chunks, added.embedded
            ));
        }
    }
    documents.close().await;
    Ok(())
}

fn servers(data: &DemoData, kept: &Kept) -> String {
    let model = toml_edit::Value::from(kept.model_url.as_str());
    let more = format!(
        "env = {{ PERIHELION_EMBEDDINGS_URL = {model}, PERIHELION_EMBEDDINGS_MODEL = \"{MODEL}\" }}
\
         agent = \"documents\""
    );
    let documents = |name: &str, about: &str| {
        let database = kept.database.as_str();
        let args = ["documents", "--database", database, "--collection", name, "--read-only"];
        table(name, about, &args, &more)
    };
    [
        documents(RELEASES, "the time zone database's announcements of 2013 and 2018"),
        documents(THEORY, "how the time zone database is made"),
        timezones(data),
    ]
    .concat()
}
