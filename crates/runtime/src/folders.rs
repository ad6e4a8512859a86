//! Folders of documents: which of their files count, and what changes in them.
//!
//! What the system tells of changes is a hint and no more: each path that it names is looked at, and where it told too much
//! to be kept, everything is. So nothing depends on the kinds of events, which differ between systems.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use perihelion_documents::ends_in;
use perihelion_documents::parse::Format;
use tokio::sync::Notify;

use super::Error;
use perihelion_engine::clock;

/// How deeply directories are followed.
const DEEPEST: usize = 32;

/// Changed paths that are kept apart until they are taken; of more, every folder is looked at again.
const MOST_PATHS: usize = 10_000;

/// How long nothing may change before what changed is looked at: editors write in several steps.
const QUIET: Duration = Duration::from_millis(300);

/// How long changes that do not end are waited for.
const LONGEST: Duration = Duration::from_secs(5);

/// Files, and directories with all that counts below them.
#[derive(Clone, Debug)]
pub struct Folders {
    roots: Vec<PathBuf>,
    patterns: Vec<String>,
    /// Endings of names that count beside those of known formats, with or without the dot.
    endings: Vec<String>,
}

/// What may have changed since the last look.
#[derive(Debug, Default)]
pub struct Changed {
    /// Files that are there.
    pub files: Vec<PathBuf>,
    /// Files and directories that are not there any more.
    pub gone: Vec<PathBuf>,
}

/// What changes in folders, from the moment on at which this was made; it ends when it is dropped.
pub struct Changes {
    folders: Folders,
    changes: Arc<Reported>,
    _watcher: RecommendedWatcher,
}

#[derive(Default)]
struct Reported {
    dirty: Mutex<Dirty>,
    bell: Notify,
}

#[derive(Default)]
struct Dirty {
    paths: BTreeSet<PathBuf>,
    everything: bool,
}

impl Folders {
    /// Names files and directories; of directories count those files whose name fits one of the patterns (of `*` and `?`), and
    /// without patterns those of a known format.
    pub fn new(roots: Vec<PathBuf>, patterns: Vec<String>) -> Self {
        Self { roots, patterns, endings: Vec::new() }
    }

    /// Has files count whose names end so, where there are no patterns.
    #[must_use]
    pub fn with_endings(self, endings: Vec<String>) -> Self {
        Self { endings, ..self }
    }

    /// Follows links in the names of the folders themselves, so that they are named as changes in them are.
    ///
    /// # Errors
    /// [`Error::Documents`] for one that is not there.
    pub fn resolved(self) -> Result<Self, Error> {
        let roots = self
            .roots
            .iter()
            .map(|root| std::fs::canonicalize(root).map_err(|source| unreadable(root, source)));
        let roots = roots.collect::<Result<_, _>>()?;
        Ok(Self { roots, ..self })
    }

    /// Returns the folders that were named.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Returns the files that count, in the order of their names.
    ///
    /// # Errors
    /// [`Error::Documents`] for a directory that cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut files = Vec::new();
        for root in &self.roots {
            if root.is_dir() {
                self.collect_files(root, 0, &mut files)?
            } else {
                files.push(root.clone())
            }
        }
        Ok(files)
    }

    /// Tells whether a file, which may be gone, lies where its folder is there and would count.
    pub fn counts(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| match path.strip_prefix(root) {
            Ok(inner) if inner.as_os_str().is_empty() => root.parent().is_some_and(Path::is_dir),
            Ok(inner) => root.is_dir() && !is_hidden(inner) && self.is_wanted(path),
            Err(_) => false,
        })
    }

    /// Begins to hear of changes.
    ///
    /// # Errors
    /// [`Error::Watch`] when the system refuses.
    pub fn watch(&self) -> Result<Changes, Error> {
        let changes = Arc::new(Reported::default());
        let hears = Arc::clone(&changes);
        let handler = move |event: notify::Result<notify::Event>| hears.take(event);
        let config = Config::default().with_follow_symlinks(false);
        let refused = |root: &Path, error: notify::Error| {
            Error::Watch {
            path: root.display().to_string(),
            reason: match error.kind {
                notify::ErrorKind::MaxFilesWatch => {
                    "the system limit of watched files is reached; raise fs.inotify.max_user_watches".to_owned()
                }
                _ => error.to_string(),
            },
        }
        };
        let first = self.roots.first().cloned().unwrap_or_default();
        let mut watcher =
            RecommendedWatcher::new(handler, config).map_err(|error| refused(&first, error))?;
        for root in &self.roots {
            // A file that is replaced by another of its name is seen in its directory only.
            let (place, mode) = match root.parent() {
                Some(parent) if !root.is_dir() => (parent, RecursiveMode::NonRecursive),
                _ => (root.as_path(), RecursiveMode::Recursive),
            };
            watcher.watch(place, mode).map_err(|error| refused(root, error))?;
        }
        Ok(Changes { folders: self.clone(), changes, _watcher: watcher })
    }

    fn is_wanted(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if self.patterns.is_empty() {
            Format::by_name(&name).is_some() || ends_in(&name, &self.endings)
        } else {
            self.patterns.iter().any(|pattern| fits(pattern, &name))
        }
    }

    fn collect_files(
        &self,
        directory: &Path,
        depth: usize,
        files: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        let failed = |source| unreadable(directory, source);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            entries.push(entry.map_err(failed)?);
        }
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().map_err(failed)?;
            if is_hidden(Path::new(&entry.file_name())) {
                continue;
            }
            if kind.is_dir() && depth < DEEPEST {
                self.collect_files(&entry.path(), depth + 1, files)?;
            } else if kind.is_file() && self.is_wanted(&entry.path()) {
                files.push(entry.path());
            }
        }
        Ok(())
    }

    /// Looks at what changed: files are there or gone, and a directory stands for all that is below it.
    fn look(&self, dirty: Dirty) -> Changed {
        let mut changed = Changed::default();
        let mut files = BTreeSet::new();
        let paths =
            if dirty.everything { self.roots.iter().cloned().collect() } else { dirty.paths };
        for path in paths {
            let Ok(kind) = std::fs::symlink_metadata(&path) else {
                changed.gone.push(path);
                continue;
            };
            let mut found = Vec::new();
            if kind.is_file() {
                found.push(path);
            } else if kind.is_dir()
                && let Err(error) = self.collect_files(&path, 0, &mut found)
            {
                // It changes again in this moment, of which another event tells.
                tracing::debug!(%error, "a directory could not be looked at");
            }
            files.extend(found.into_iter().filter(|file| self.counts(file)));
        }
        if dirty.everything {
            changed.gone.extend(self.roots.iter().cloned());
        }
        changed.files = files.into_iter().collect();
        changed
    }
}

impl Changes {
    /// Waits for changes, until they pause; dropped before it returns, it loses none.
    pub async fn next(&mut self) -> Changed {
        loop {
            self.changes.bell.notified().await;
            let since = clock::monotonic();
            while since.elapsed() < LONGEST {
                if tokio::time::timeout(QUIET, self.changes.bell.notified()).await.is_err() {
                    break;
                }
            }
            let dirty = std::mem::take(&mut *self.changes.lock());
            if dirty.everything || !dirty.paths.is_empty() {
                return self.folders.look(dirty);
            }
        }
    }
}

impl Reported {
    fn take(&self, event: notify::Result<notify::Event>) {
        let mut dirty = self.lock();
        match event {
            Ok(event) if event.need_rescan() => dirty.everything = true,
            Ok(event) if is_change(event.kind) => dirty.paths.extend(event.paths),
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "missed file changes; scanning every folder again");
                dirty.everything = true;
            }
        }
        if dirty.paths.len() > MOST_PATHS {
            *dirty = Dirty { paths: BTreeSet::new(), everything: true };
        }
        drop(dirty);
        self.bell.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Dirty> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether an event changes anything: reading does not, and this program reads.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
}

fn unreadable(path: &Path, source: std::io::Error) -> Error {
    perihelion_documents::Error::File { path: path.display().to_string(), source }.into()
}

/// Tells whether a name matches a pattern of `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
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

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_match_whole_names() {
        assert!(fits("*.pdf", "a.b.pdf") && fits("?.md", "a.md") && fits("*", ""));
        assert!(!fits("*.pdf", "a.pdfx") && !fits("?.md", "ab.md"));
    }
}
