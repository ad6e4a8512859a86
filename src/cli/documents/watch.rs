//! `documents add --watch`: follows new, changed and deleted files in folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::add::{Args, Bar, as_json, line, refused, warn};
use crate::cli::{Exit, Result, Signals, output};
use perihelion_engine::clock;
use perihelion_runtime::{self as runtime, Changed, Documents, Folders};

/// How long what failed for reasons that pass is left alone.
const AGAIN: Duration = Duration::from_secs(5);

pub(super) async fn run(documents: &Documents, folders: Folders, args: &Args) -> Result<Exit> {
    let signals = Signals::listen()?;
    let folders = folders.resolved()?;
    // From here on nothing is missed: what changes during the first look is looked at after it.
    let mut changes = folders.watch()?;
    let documents = documents.clone().stopping_at(signals.stop_token());
    let mut following = Following { documents, folders, args, later: BTreeSet::new() };
    let first =
        Changed { files: following.folders.files()?, gone: following.folders.roots().to_vec() };
    signals.unless_aborted(following.take(first, &signals)).await??;
    if !signals.is_stopped() {
        following
            .tell(json!({ "event": "watching" }), "watching for changes; press Ctrl-C to stop")?;
    }
    while !signals.is_stopped() {
        let waits = !following.later.is_empty();
        let changed = tokio::select! {
            () = signals.stopped() => break,
            changed = changes.next() => changed,
            () = clock::sleep(AGAIN), if waits => Changed::default(),
        };
        signals.unless_aborted(following.take(changed, &signals)).await??;
    }
    following.tell(json!({ "event": "stopped" }), "stopped; run the same command to continue")?;
    Ok(Exit::Done)
}

struct Following<'a> {
    documents: Documents,
    folders: Folders,
    args: &'a Args,
    /// Files that could not be added for reasons that pass.
    later: BTreeSet<PathBuf>,
}

impl Following<'_> {
    /// Adds present files, and deletes missing ones on request; ends early after a signal.
    async fn take(&mut self, changed: Changed, signals: &Signals) -> Result<()> {
        let mut files: BTreeSet<PathBuf> = changed.files.into_iter().collect();
        files.append(&mut self.later);
        for (number, path) in (1..).zip(&files) {
            if signals.is_stopped() {
                return Ok(());
            }
            self.add(path, (number, files.len()), signals).await?;
        }
        if !changed.gone.is_empty() {
            self.forget(&changed.gone).await?;
        }
        Ok(())
    }

    async fn add(&mut self, path: &Path, place: (usize, usize), signals: &Signals) -> Result<()> {
        let bar = Bar::begin(self.args.quiet, place, path);
        let collection = self.args.place.to_add();
        let added = self.documents.add(path, collection, None, bar.listener()).await;
        bar.end();
        match added {
            Ok(added) if added.unchanged => {
                warn(&added);
                self.tell_if_json(with_event("unchanged", as_json(&added)))
            }
            Ok(added) => {
                warn(&added);
                if self.args.json {
                    self.tell_if_json(with_event("added", as_json(&added)))
                } else {
                    output::text(&line(&added))
                }
            }
            // It continues with the next start.
            Err(_) if signals.is_stopped() => Ok(()),
            // It changed while it was read, or was deleted: another event follows.
            Err(_) if !path.exists() => Ok(()),
            Err(error) => {
                if !matches!(error, runtime::Error::Document { .. }) {
                    self.later.insert(path.to_owned());
                }
                self.tell_if_json(with_event("failed", refused(path, &error.into())))
            }
        }
    }

    /// Deletes the documents of files that are gone, or says that they stay.
    async fn forget(&self, gone: &[PathBuf]) -> Result<()> {
        for document in self.documents.list(Some(self.args.place.to_add())).await? {
            let path = Path::new(&document.path);
            let is_meant = gone.iter().any(|gone| path.starts_with(gone));
            if !is_meant || path.exists() || !self.folders.counts(path) {
                continue;
            }
            let mut event = json!({ "document": document.id, "path": document.path });
            if !self.args.prune {
                event["event"] = json!("gone");
                let words = format!(
                    "file deleted, document kept: {} (pass --prune to delete such documents)",
                    document.path
                );
                self.tell(event, &words)?;
                continue;
            }
            event["event"] = json!("deleted");
            let deleted = self.documents.delete(&document.id).await?;
            if self.args.json {
                output::json_line(&event)?
            } else {
                output::text(&format!("deleted  {}  {}", deleted.id, deleted.title()))?
            }
        }
        Ok(())
    }

    fn tell_if_json(&self, event: Value) -> Result<()> {
        if self.args.json { output::json_line(&event) } else { Ok(()) }
    }

    fn tell(&self, event: Value, note: &str) -> Result<()> {
        if self.args.json {
            output::json_line(&event)
        } else {
            output::note(note);
            Ok(())
        }
    }
}

fn with_event(event: &str, mut value: Value) -> Value {
    value["event"] = json!(event);
    value
}
