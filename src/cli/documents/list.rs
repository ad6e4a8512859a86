//! `documents list`, `show`, `export`, `delete`, `prune` and `reindex`.

use std::sync::Arc;

use chrono::DateTime;
use serde_json::json;

use super::{InCollection, known_as, placed};
use crate::cli::bars::Form;
use crate::cli::output::{self, BARS};
use crate::cli::{Error, Result};
use perihelion_engine::clock;
use perihelion_runtime::{self as runtime, Document, DocumentRoom, Documents};
use perihelion_settings::config::Age;

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ShowArgs {
    /// Document, by ID, at least 6 characters of its beginning, or path
    #[arg(value_name = "ID")]
    document: String,
    /// First character to print
    #[arg(long, value_name = "N")]
    start: Option<usize>,
    /// Print up to this character
    #[arg(long, value_name = "N")]
    end: Option<usize>,
    #[command(flatten)]
    place: InCollection,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct PruneArgs {
    /// Delete documents that have not changed for this time, such as 12h, 30d or 8w. Defaults to documents.max_age
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
    #[command(flatten)]
    place: InCollection,
    /// List the documents without deleting them
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct DeleteArgs {
    /// Document, by ID, at least 6 characters of its beginning, or path
    #[arg(value_name = "ID")]
    document: String,
    #[command(flatten)]
    place: InCollection,
}

pub(super) async fn run(documents: &Documents, place: &InCollection, json: bool) -> Result<()> {
    let listed = documents.list(place.named()).await?;
    let rows = listed.iter().map(|one| {
        [
            one.id.chars().take(12).collect(),
            one.title.clone(),
            one.collection.clone(),
            one.format.clone(),
            one.chunks.to_string(),
            one.changed_at.format("%Y-%m-%d %H:%M").to_string(),
        ]
    });
    let head = ["id", "title", "collection", "format", "chunks", "changed"];
    let none = "no documents yet; add some with `perihelion documents add PATH`";
    output::listed(json, &listed, none, || output::table(head, rows.collect()))?;
    if !json && !listed.is_empty() {
        output::note(&used(&documents.room().await?));
    }
    Ok(())
}

fn used(room: &DocumentRoom) -> String {
    let used = room.used;
    let permitted = room.permitted;
    let part = |used: u64, permitted: Option<u64>, what: &str| match permitted {
        Some(permitted) => format!("{used} of {permitted} {what}"),
        None => format!("{used} {what}"),
    };
    let parts = [
        part(used.documents, permitted.documents, "documents"),
        part(used.text_bytes, permitted.text_bytes, "bytes of text"),
        part(used.chunks, permitted.chunks, "chunks"),
    ];
    format!("used: {}", parts.join(", "))
}

pub(super) async fn show(documents: &Documents, args: &ShowArgs, json: bool) -> Result<()> {
    let document = find(documents, &args.document, &args.place).await?;
    let read = documents.read(&document.id, args.start, args.end).await?;
    if json {
        return output::json(&json!({ "document": document, "read": read }));
    }
    let mut head = vec![
        format!("id           {}", document.id),
        format!("title        {}", document.title),
        format!("path         {}", document.path),
        format!("collection   {}", document.collection),
        format!("format       {}, {} bytes", document.format, document.bytes),
        format!(
            "version      {}, {} characters in {} chunks",
            document.version, document.characters, document.chunks
        ),
    ];
    if !document.authors.is_empty() {
        head.push(format!("authors      {}", document.authors.join(", ")));
    }
    if let Some(description) = &document.description {
        head.push(format!("about        {}: {}", description.kind, description.summary));
        head.push(format!("topics       {}", description.topics.join(", ")));
    }
    head.extend(document.warnings.iter().map(|warning| format!("warning      {warning}")));
    let at = placed(
        read.page,
        Some(&read.section.join(" › ")).filter(|title| !title.is_empty()).map(String::as_str),
        None,
    );
    head.push(format!("text         {}..{} of {} {at}", read.start, read.end, read.length));
    output::text(&format!("{}\n\n{}", head.join("\n"), read.text))
}

/// Writes a document as a line: its metadata, and its text.
pub(super) async fn export(documents: &Documents, place: &InCollection) -> Result<()> {
    for document in documents.list(place.named()).await? {
        if let Some(exported) = documents.exported(document).await? {
            output::json_line(&exported)?;
        }
    }
    Ok(())
}

pub(super) async fn prune(
    documents: &Documents,
    max_age: Option<Age>,
    args: &PruneArgs,
    json: bool,
) -> Result<()> {
    let age = args.older_than.or(max_age).ok_or(Error::NoDocumentAge)?;
    // Nothing is older than time.
    let before = age.before(clock::now()).unwrap_or(DateTime::UNIX_EPOCH);
    let collection = args.place.named();
    let old = documents.older(collection, before).await?;
    let mut named: Vec<(String, String)> = old.into_iter().map(|one| (one.id, one.title)).collect();
    for attempt in documents.abandoned(collection, before).await? {
        // Begun several times, it is one document.
        if named.iter().all(|(id, _)| *id != attempt.id) {
            named.push((attempt.id, format!("{} (adding it was never completed)", attempt.path)));
        }
    }
    let mut gone = Vec::new();
    for (id, title) in named {
        if !args.dry_run && !documents.delete_older(&id, before).await? {
            continue;
        }
        if !json {
            let what = if args.dry_run { "would delete" } else { "deleted" };
            output::text(&format!("{what}  {id}  {title}"))?;
        }
        gone.push(json!({ "document": id, "title": title }));
    }
    if json {
        return output::json(&json!({ "deleted": gone, "dry_run": args.dry_run }));
    }
    if gone.is_empty() {
        output::note("no documents are that old");
    }
    Ok(())
}

async fn find(documents: &Documents, given: &str, place: &InCollection) -> Result<Document> {
    let document = documents.find(&known_as(documents, given).await).await?;
    match place.named() {
        Some(collection) if collection != document.collection => Err(unknown(given)),
        _ => Ok(document),
    }
}

fn unknown(given: &str) -> Error {
    runtime::Error::unknown_document(given).into()
}

pub(super) async fn delete(documents: &Documents, args: &DeleteArgs, json: bool) -> Result<()> {
    let named = args.place.named();
    let known = known_as(documents, &args.document).await;
    let begun = documents.begun(&known).await?;
    if named.is_some_and(|named| begun.iter().any(|one| one.collection != named)) {
        return Err(unknown(&args.document));
    }
    let gone = documents.delete(&known).await?;
    let title = gone.title();
    let shown = json!({ "document": gone.id, "title": title, "deleted": true });
    output::either(json, &shown, || format!("deleted  {}  {title}", gone.id))
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ReindexArgs {
    #[command(flatten)]
    within: InCollection,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) async fn reindex(documents: &Documents, args: &ReindexArgs, json: bool) -> Result<()> {
    if let Some(collection) = args.within.named() {
        output::note(&format!(
            "all collections share one model, so every collection is embedded, not only: {collection}"
        ));
    }
    // How many texts are left is not known before they are read.
    let bar = BARS.shown(Form::Spinner).filter(|_| !args.quiet);
    let shown = bar.clone();
    let quiet = args.quiet;
    let listener = move |done: u64| {
        let text = format!("embedded {done} texts");
        match &shown {
            Some(bar) => bar.set_message(text),
            None if quiet => {}
            None => output::note(&text),
        }
    };
    let done = documents.reindex(Arc::new(listener)).await;
    if let Some(bar) = bar {
        bar.end();
    }
    let done = done?;
    let shown = json!({ "embedded": done });
    match done {
        Some(count) => output::either(json, &shown, || {
            format!("embedded {count} texts; searches now use this model")
        }),
        None => output::done(
            json,
            &shown,
            "no embeddings endpoint is configured, so documents use keyword search only; set PERIHELION_EMBEDDINGS_URL",
        ),
    }
}
