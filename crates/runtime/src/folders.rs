//! Folders of documents: which of their files count, and what changes in them.
//!
//! Folders are compared with their previous contents, and not watched by the system: this also works for mounted
//! directories and shared disks, and within the limits of any system.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use perihelion_documents::ends_in;
use perihelion_documents::parse::Format;
use regex::RegexSet;

use super::Error;
use perihelion_engine::clock;

/// How deeply directories are followed.
const DEEPEST: usize = 32;

const PAUSE: Duration = Duration::from_millis(400);

/// How many times longer than a look the pause after it is at least, so that large folders keep no processor busy.
const SHARE: u32 = 20;

/// How long changes that do not end are waited for.
const LONGEST: Duration = Duration::from_secs(5);

/// Files, and directories with all that counts below them.
#[derive(Clone, Debug)]
pub struct Folders {
    roots: Vec<PathBuf>,
    patterns: RegexSet,
    /// File name endings that count in addition to known formats, with or without the dot.
    endings: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Changed {
    pub files: Vec<PathBuf>,
    pub gone: Vec<PathBuf>,
}

pub struct Changes {
    folders: Folders,
    seen: Seen,
}

/// Matching files, each with the attributes that a write changes.
type Seen = BTreeMap<PathBuf, Stamp>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds of the last change, of content or otherwise.
    changed_at: (i64, i64),
}

impl Folders {
    /// Names files and directories. In directories, files match whose name fits one of the patterns (with `*` and `?`),
    /// or without patterns those of a known format, or with one of these endings.
    pub fn new(roots: Vec<PathBuf>, patterns: Vec<String>, endings: Vec<String>) -> Self {
        let whole = |pattern: &String| {
            let pattern = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
            format!("(?s)^{pattern}$")
        };
        let patterns = RegexSet::new(patterns.iter().map(whole));
        Self { roots, patterns: patterns.unwrap_or_default(), endings }
    }

    /// Follows links in the names of the folders themselves, so that they are named as changes in them are.
    ///
    /// # Errors
    /// [`Error::Documents`] for a missing path.
    pub fn resolved(self) -> Result<Self, Error> {
        let real =
            |root: &PathBuf| std::fs::canonicalize(root).map_err(|source| unreadable(root, source));
        let roots = self.roots.iter().map(real).collect::<Result<_, _>>()?;
        Ok(Self { roots, ..self })
    }

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

    /// Returns whether a file, which may be deleted, would match and is in an existing folder.
    pub fn counts(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| match path.strip_prefix(root) {
            Ok(inner) if inner.as_os_str().is_empty() => root.parent().is_some_and(Path::is_dir),
            Ok(inner) => root.is_dir() && !is_hidden(inner) && self.is_wanted(path),
            Err(_) => false,
        })
    }

    /// Begins to compare.
    ///
    /// # Errors
    /// [`Error::Documents`] for a directory that cannot be read.
    pub fn watch(&self) -> Result<Changes, Error> {
        Ok(Changes { folders: self.clone(), seen: self.look()? })
    }

    fn is_wanted(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if self.patterns.is_empty() {
            // Not every picture has text; a pattern asks for them.
            Format::by_name(&name).is_some_and(|format| format != Format::Image)
                || ends_in(&name, &self.endings)
        } else {
            self.patterns.is_match(&name)
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

    fn look(&self) -> Result<Seen, Error> {
        let stamped = self.files()?.into_iter().filter_map(|path| {
            let found = std::fs::symlink_metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
            let changed_at = (found.ctime(), found.ctime_nsec());
            Some((path, Stamp { inode: found.ino(), bytes: found.size(), changed_at }))
        });
        Ok(stamped.collect())
    }
}

impl Changes {
    /// Waits for changes until they pause, since editors write in several steps. If it is dropped before it returns, no
    /// change is lost.
    pub async fn next(&mut self) -> Changed {
        let mut last = None;
        let mut since = None;
        let mut pause = PAUSE;
        loop {
            clock::sleep(pause).await;
            let begun = clock::monotonic();
            let folders = self.folders.clone();
            let looked = tokio::task::spawn_blocking(move || folders.look()).await;
            pause = PAUSE.max(begun.elapsed() * SHARE);
            // A directory that cannot be read changes in this moment, and the next look finds it.
            let Ok(Ok(now)) = looked else { continue };
            if now == self.seen {
                last = None;
                since = None;
                continue;
            }
            let is_late = since.get_or_insert(begun).elapsed() > LONGEST;
            if is_late || last.as_ref() == Some(&now) {
                return self.changed(now);
            }
            last = Some(now);
        }
    }

    fn changed(&mut self, now: Seen) -> Changed {
        let before = std::mem::replace(&mut self.seen, now);
        let files = self.seen.iter().filter(|(path, stamp)| before.get(*path) != Some(*stamp));
        let files = files.map(|(path, _)| path.clone()).collect();
        let gone = before.into_keys().filter(|path| !self.seen.contains_key(path)).collect();
        Changed { files, gone }
    }
}

fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
}

pub(super) fn unreadable(path: &Path, source: std::io::Error) -> Error {
    perihelion_documents::Error::File { path: path.display().to_string(), source }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let fits = |pattern: &str, name: &str| {
            let folders = Folders::new(Vec::new(), vec![pattern.to_owned()], Vec::new());
            folders.is_wanted(Path::new(name))
        };
        assert!(fits("*.pdf", "a.b.pdf") && fits("?.md", "a.md") && fits("*", ""));
        assert!(!fits("*.pdf", "a.pdfx") && !fits("?.md", "ab.md"));
    }
}
