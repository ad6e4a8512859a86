//! Polls the servers file for changes, and for requests to reload it.
//!
//! The file is polled twice a second and not watched by the system. This also works for editors that save by renaming,
//! mounted directories and swapped links, and it needs no thread and no higher limit.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use super::Plugins;
use super::presence::{About, Answer, Presence};
use crate::{Runtime, ServerProblem};
use perihelion_engine::clock;
use perihelion_mcp::Reloaded;

const LOOK: Duration = Duration::from_millis(500);

pub type Environment = fn(&str) -> Option<String>;

#[derive(Debug)]
pub enum ReloadOutcome<'a> {
    /// The servers file was applied; these servers have problems.
    Done(&'a Reloaded, &'a [ServerProblem]),
    /// The file cannot be used, and the servers are unchanged.
    Refused(&'a super::Error),
}

pub type ReloadListener = Arc<dyn Fn(ReloadOutcome<'_>) + Send + Sync>;

/// The watch on the servers file; it ends when this is dropped.
#[derive(Debug)]
pub struct Watching {
    hung_up: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Watching {
    /// Returns what SIGHUP notifies: the servers file is read again, changed or not.
    pub fn hung_up(&self) -> Arc<Notify> {
        Arc::clone(&self.hung_up)
    }
}

impl Runtime {
    /// Takes changes of the servers file over while the runtime lives, and makes the process known to
    /// `perihelion agents` as a `role` (`worker`, `run`).
    ///
    /// Without `servers.watch` it only does so when it is asked to. `None` if the servers came from no file.
    pub fn watch_servers(
        &self,
        role: &str,
        env: Environment,
        reported: ReloadListener,
    ) -> Option<Watching> {
        let plugins = &self.plugins;
        let file = plugins.file.clone()?;
        let about = About {
            pid: std::process::id(),
            role: role.to_owned(),
            servers_file: std::path::absolute(&file).unwrap_or(file),
            database: self.store().describe(),
        };
        let presence = Presence::announce(about);
        let hung_up = Arc::new(Notify::new());
        let watch = Watch {
            plugins: Arc::downgrade(plugins),
            presence,
            is_automatic: self.settings().servers.watch,
            env,
            reported,
        };
        let task = AbortOnDropHandle::new(tokio::spawn(watch.run(Arc::clone(&hung_up))));
        Some(Watching { hung_up, _task: task })
    }
}

struct Watch {
    plugins: Weak<Plugins>,
    presence: Option<Presence>,
    is_automatic: bool,
    env: Environment,
    reported: ReloadListener,
}

impl Watch {
    async fn run(mut self, hung_up: Arc<Notify>) {
        let Some(sources) = self.plugins.upgrade().map(|plugins| plugins.sources()) else { return };
        let mut taken = Look::at(&sources);
        let mut last = taken.clone();
        loop {
            let is_asked = tokio::select! {
                () = hung_up.notified() => true,
                () = clock::sleep(LOOK) => false,
            };
            let Some(plugins) = self.plugins.upgrade() else { return };
            let now = Look::at(&plugins.sources());
            // A file that is being written is left alone until two looks find it the same.
            let has_changed = self.is_automatic && now != taken && now == last;
            last = now.clone();
            let request = self.presence.as_ref().and_then(Presence::request);
            if has_changed || is_asked || request.is_some() {
                taken = now;
                let answer = self.reload(&plugins, is_asked || request.is_some()).await;
                // The file may import others now.
                taken.adopt(&plugins.sources());
                last = taken.clone();
                if let (Some(presence), Some(request)) = (&mut self.presence, request) {
                    presence.answer(request, answer);
                }
            }
            if let Some(presence) = &mut self.presence {
                presence.tell(plugins.pool.states());
            }
        }
    }

    async fn reload(&self, plugins: &Plugins, again: bool) -> Answer {
        match plugins.read_again(&self.env) {
            Ok(file) => {
                let reloaded = match file {
                    Some(file) => plugins.take_over(file, again).await,
                    None => Reloaded::default(),
                };
                let problems = plugins.problems.read().clone();
                (self.reported)(ReloadOutcome::Done(&reloaded, &problems));
                let problems = problems.into_iter();
                Answer {
                    reloaded,
                    refused: None,
                    problems: problems
                        .map(|one| format!("{}: {}", one.server, one.problem))
                        .collect(),
                }
            }
            Err(error) => {
                (self.reported)(ReloadOutcome::Refused(&error));
                Answer { refused: Some(error.to_string()), ..Answer::default() }
            }
        }
    }
}

/// The attributes of files that are visible without reading them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Look(Vec<(PathBuf, Option<Stamp>)>);

/// A file that was saved again has another one of these, however it was saved.
type Stamp = (Option<SystemTime>, u64, u64);

impl Look {
    fn at(files: &[PathBuf]) -> Self {
        Self(files.iter().map(|file| (file.clone(), stamp(file))).collect())
    }

    /// Counts files that were not looked at before as seen.
    fn adopt(&mut self, files: &[PathBuf]) {
        let known = std::mem::take(&mut self.0);
        let find =
            |file: &PathBuf| known.iter().find(|(one, _)| one == file).map(|(_, stamp)| *stamp);
        self.0 = files
            .iter()
            .map(|file| (file.clone(), find(file).unwrap_or_else(|| stamp(file))))
            .collect();
    }
}

fn stamp(file: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let data = std::fs::metadata(file).ok()?;
    Some((data.modified().ok(), data.len(), data.ino()))
}
