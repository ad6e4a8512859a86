//! `documents add`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use perihelion_documents::{Step, parse};
use serde_json::{Value, json};

use super::InCollection;
use crate::cli::output::{self, BARS};
use crate::cli::{Error, Exit};
use crate::runtime::{AddedDocument, Documents};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Files, and directories with all the documents below them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    place: InCollection,
    /// Title in place of the document's own; for one file
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Of directories, only files whose name matches, such as '*.pdf'
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// How deeply directories are followed.
const DEEPEST: usize = 32;

pub(super) async fn run(documents: &Documents, args: &Args) -> Result<Exit, Error> {
    let mut files = Vec::new();
    for path in &args.paths {
        match path.is_dir() {
            true => gather(path, args.pattern.as_deref(), 0, &mut files)?,
            false => files.push(path.clone()),
        }
    }
    if files.is_empty() {
        output::note("no documents are there");
    }
    let title = args.title.clone().filter(|_| files.len() == 1);
    let mut outcomes = Vec::new();
    let mut failed = 0;
    for (number, path) in (1..).zip(&files) {
        let bar = Bar::begin(args.quiet, number, files.len(), path);
        let shown = bar.clone();
        let listener = Arc::new(move |step: Step| shown.tell(step));
        let added = documents.add(path, args.place.to_add(), title.clone(), listener).await;
        bar.end();
        match added {
            Ok(added) => {
                if !args.json {
                    output::text(&line(&added))?;
                }
                if let Some(why) = &added.by_words_only {
                    output::warning(&format!("found by words alone: {why}"));
                }
                outcomes.push(as_json(&added));
            }
            Err(error) => {
                failed += 1;
                output::error(&error.to_string());
                outcomes.push(
                    json!({ "path": path.display().to_string(), "error": error.to_string() }),
                );
            }
        }
    }
    if args.json {
        output::json(&json!({ "documents": outcomes, "failed": failed }))?;
    }
    Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
}

fn line(added: &AddedDocument) -> String {
    let document = &added.document;
    let what = if added.unchanged { "unchanged" } else { "added" };
    let warnings: String =
        document.warnings.iter().map(|warning| format!("\n  warning: {warning}")).collect();
    format!(
        "{what}  {}  {} ({}, {} pieces, version {}){warnings}",
        document.id, document.title, document.format, document.chunks, document.version
    )
}

fn as_json(added: &AddedDocument) -> Value {
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

/// Gathers the documents below a directory, in the order of their names.
fn gather(
    directory: &Path,
    pattern: Option<&str>,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let failed = |source| Error::Read { path: directory.to_owned(), source };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        entries.push(entry.map_err(failed)?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(failed)?;
        if name.starts_with('.') {
            continue;
        }
        if kind.is_dir() && depth < DEEPEST {
            gather(&entry.path(), pattern, depth + 1, files)?;
        } else if kind.is_file() {
            let wanted = match pattern {
                Some(pattern) => fits(pattern, &name),
                None => parse::Format::by_name(&name).is_some(),
            };
            if wanted {
                files.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Tells whether a name matches a pattern of `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for sign in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match sign {
                '*' => reached[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && reached[at - 1],
                sign => at > 0 && reached[at - 1] && name[at - 1] == sign,
            };
        }
        reached = next;
    }
    reached[name.len()]
}

/// Shows how far a document is: a bar on a terminal, plain lines elsewhere.
#[derive(Clone)]
struct Bar {
    bar: Option<ProgressBar>,
    quiet: bool,
    head: String,
}

impl Bar {
    fn begin(quiet: bool, number: usize, of: usize, path: &Path) -> Self {
        let head = format!("[{number}/{of}] {}", output::plain(&path.display().to_string()));
        let live = !quiet && std::io::stderr().is_terminal();
        let bar = live.then(|| {
            let bar = BARS.add(ProgressBar::new(1));
            if let Ok(style) = ProgressStyle::with_template("{bar:20.cyan} {elapsed:>4} {wide_msg}")
            {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, quiet, head }
    }

    fn tell(&self, step: Step) {
        let text = match step {
            Step::Parse => "parsing".to_owned(),
            Step::Describe => "describing".to_owned(),
            Step::Embed { done, of } => format!("embedding {done} of {of}"),
            Step::Keep => "keeping".to_owned(),
        };
        match &self.bar {
            Some(bar) => {
                if let Step::Embed { done, of } = step {
                    bar.set_length(of as u64);
                    bar.set_position(done as u64);
                }
                bar.set_message(format!("{} {text}", self.head));
            }
            None if self.quiet => {}
            None => output::note(&format!("{} {text}", self.head)),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_match_whole_names() {
        assert!(fits("*.pdf", "a.b.pdf") && fits("?.md", "a.md") && fits("*", ""));
        assert!(!fits("*.pdf", "a.pdfx") && !fits("?.md", "ab.md"));
    }
}
