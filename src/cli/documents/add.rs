//! `documents add`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{InCollection, watch};
use crate::cli::output::{self, BARS};
use crate::cli::{Error, Exit, Result, bars};
use perihelion_runtime::{AddedDocument, AddingStep, Documents};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Files and directories. Directories are searched recursively
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) place: InCollection,
    /// Title to use instead of the document's title. Only with a single file
    #[arg(long, value_name = "TEXT", conflicts_with = "watch")]
    title: Option<String>,
    /// Read files again although they are unchanged, for example after a change of documents.parser
    #[arg(long, conflicts_with = "watch")]
    again: bool,
    /// Only add files in directories with a matching name, such as '*.pdf'. Repeatable
    #[arg(long, value_name = "PATTERN")]
    pattern: Vec<String>,
    /// Keep running, and add new and changed files until Ctrl-C
    #[arg(long)]
    pub(super) watch: bool,
    /// With --watch, delete documents after their files are deleted
    #[arg(long, requires = "watch")]
    pub(super) prune: bool,
    /// Print JSON, or with --watch one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
    /// Hide progress
    #[arg(long, short)]
    pub(super) quiet: bool,
}

pub(super) async fn run(documents: &Documents, args: &Args) -> Result<Exit> {
    let folders = documents.folders(args.paths.clone(), args.pattern.clone());
    if args.watch {
        return watch::run(documents, folders, args).await;
    }
    let files = folders.files()?;
    if files.is_empty() {
        output::note("no documents found");
    }
    let title = args.title.clone().filter(|_| files.len() == 1);
    let mut outcomes = Vec::new();
    let mut failed = 0;
    for (number, path) in (1..).zip(&files) {
        let bar = Bar::begin(args.quiet, (number, files.len()), path);
        let adding = async {
            if args.again {
                documents.read_again(path, args.place.to_add()).await?;
            }
            documents.add(path, args.place.to_add(), title.clone(), bar.listener()).await
        };
        let added = adding.await;
        bar.end();
        match added {
            Ok(added) => {
                if !args.json {
                    output::text(&line(&added))?;
                }
                warn(&added);
                outcomes.push(as_json(&added));
            }
            Err(error) => {
                failed += 1;
                outcomes.push(refused(path, &error.into()));
            }
        }
    }
    if args.json {
        output::json(&json!({ "documents": outcomes, "failed": failed }))?;
    }
    Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
}

pub(super) fn warn(added: &AddedDocument) {
    if let Some(why) = &added.by_words_only {
        output::warning(&format!("indexed for keyword search only: {why}"));
    }
}

/// Shows why a document was not added, and returns that as JSON.
pub(super) fn refused(path: &Path, error: &Error) -> Value {
    let code = error.code();
    let error = error.to_string();
    output::coded_error(&code, &error);
    json!({ "path": path.display().to_string(), "error": error, "code": code })
}

pub(super) fn line(added: &AddedDocument) -> String {
    let document = &added.document;
    let what = if added.unchanged { "unchanged" } else { "added" };
    let warnings: String =
        document.warnings.iter().map(|warning| format!("\n  warning: {warning}")).collect();
    let embedded = if added.unchanged && added.embedded > 0 {
        format!(", embedded {}", output::count(added.embedded, "missing text"))
    } else {
        String::new()
    };
    format!(
        "{what}  {}  {} ({}, {}, version {}{embedded}){warnings}",
        document.id,
        document.title,
        document.format,
        output::count(document.chunks, "chunk"),
        document.version
    )
}

pub(super) fn as_json(added: &AddedDocument) -> Value {
    json!({
        "document": added.document.id,
        "title": added.document.title,
        "path": added.document.path,
        "collection": added.document.collection,
        "format": added.document.format,
        "version": added.document.version,
        "chunks": added.document.chunks,
        "warnings": added.document.warnings,
        "unchanged": added.unchanged,
        "embedded": added.embedded,
        "by_words_only": added.by_words_only,
        "thread_id": added.thread,
    })
}

/// Shows how far a document is: a bar on a terminal, plain lines elsewhere.
#[derive(Clone)]
pub(super) struct Bar {
    bar: Option<bars::Bar>,
    quiet: bool,
    head: String,
}

impl Bar {
    pub(super) fn begin(quiet: bool, (number, of): (usize, usize), path: &Path) -> Self {
        let head = format!("[{number}/{of}] {}", output::plain(&path.display().to_string()));
        let bar = BARS.shown(bars::Form::Bar).filter(|_| !quiet);
        Self { bar, quiet, head }
    }

    pub(super) fn listener(&self) -> Arc<dyn Fn(AddingStep) + Send + Sync> {
        let shown = self.clone();
        Arc::new(move |step: AddingStep| shown.tell(step))
    }

    fn tell(&self, step: AddingStep) {
        let text = match step {
            AddingStep::Parse => "parsing".to_owned(),
            AddingStep::Describe => "describing".to_owned(),
            AddingStep::Embed { done, of } => format!("embedding {done} of {of}"),
            AddingStep::Keep => "storing".to_owned(),
        };
        match &self.bar {
            Some(bar) => {
                if let AddingStep::Embed { done, of } = step {
                    bar.set_done(done as u64, of as u64);
                }
                bar.set_message(format!("{} {text}", self.head));
            }
            None if self.quiet => {}
            None => output::note(&format!("{} {text}", self.head)),
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.end();
        }
    }
}
