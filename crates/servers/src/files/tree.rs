//! The directory as a capability: listing and reading that cannot leave it.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::SFlag;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Error, Options, Result};
use crate::root::Root;
use perihelion_settings::config::strict::nearest;

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const MAX_ENTRIES: usize = 1_000;
/// Most files looked through by one search, and the depth of directories followed.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 32;

/// One file or directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Entry {
    /// Relative to the served directory, with `/` between names.
    pub path: String,
    /// `file`, `directory` or `link`; links are not followed when listing.
    pub kind: String,
    /// Size of a file.
    pub bytes: Option<u64>,
}

/// The entries of a directory, sorted by path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// There are more entries than are listed.
    pub truncated: bool,
}

/// Some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Excerpt {
    pub path: String,
    /// Number of the first line shown, from 1.
    pub start_line: usize,
    /// Number of the last line shown.
    pub end_line: usize,
    pub total_lines: usize,
    /// The file continues after the last line shown, or that line after its last character shown.
    pub truncated: bool,
    /// The lines, without numbers; one that is longer than can be shown ends in `…`.
    pub text: String,
}

const SEARCH_TIME: Duration = Duration::from_secs(10);

/// A directory that is served, and the size limit of its answers.
pub struct Tree {
    root: Root,
    pub(super) max_bytes: usize,
    /// Longest duration of one search, also without a waiting caller.
    pub(super) search_time: Duration,
}

impl Tree {
    /// Opens the directory.
    ///
    /// # Errors
    /// [`Error::Root`] when it is not there or not a directory.
    pub fn open(options: &Options) -> Result<Self> {
        let root = Root::open(&options.root)
            .map_err(|source| Error::Root { path: options.root.clone(), source })?;
        Ok(Self { root, max_bytes: options.max_bytes as usize, search_time: SEARCH_TIME })
    }

    /// Lists a directory, or everything below it.
    ///
    /// # Errors
    /// When the path is not there, not a directory, or leads outside.
    pub fn list(&self, path: &str, recursive: bool) -> Result<Listing> {
        let mut entries = Vec::new();
        let depth = if recursive { MAX_DEPTH } else { 0 };
        self.walk(&relative(path), depth, MAX_ENTRIES + 1, &mut entries)
            .map_err(|error| self.explain(path, error))?;
        entries.sort();
        let truncated = entries.len() > MAX_ENTRIES;
        entries.truncate(MAX_ENTRIES);
        Ok(Listing { entries, truncated })
    }

    /// Reads lines of a text file; `start_line` counts from 1.
    ///
    /// # Errors
    /// When the path is not a text file inside the directory, or ends before `start_line`.
    pub fn read(&self, path: &str, start_line: usize, max_lines: usize) -> Result<Excerpt> {
        let text = self.text(path)?;
        let lines: Vec<&str> = text.lines().collect();
        let start = start_line.max(1);
        if start > lines.len().max(1) {
            return Err(Error::PastTheEnd { path: path.into(), start, total: lines.len() });
        }
        let mut shown = String::new();
        let mut end = start - 1;
        let mut is_cut = false;
        for line in lines.iter().skip(start - 1).take(max_lines.max(1)) {
            if end >= start && shown.len() + line.len() > self.max_bytes {
                break;
            }
            is_cut |= line.len() > self.max_bytes;
            shown.push_str(&line[..line.floor_char_boundary(self.max_bytes)]);
            shown.push_str(if is_cut { "…\n" } else { "\n" });
            end += 1;
        }
        Ok(Excerpt {
            path: relative(path),
            start_line: start,
            end_line: end,
            total_lines: lines.len(),
            truncated: end < lines.len() || is_cut,
            text: shown,
        })
    }

    /// Returns the paths of the files below a path (or the file itself), sorted, and whether there are more.
    pub(super) fn files(&self, path: &str) -> Result<(Vec<String>, bool)> {
        let path = relative(path);
        let found = self.root.file(&path).and_then(|file| file.metadata());
        if found.map_err(|error| self.explain(&path, error))?.is_file() {
            return Ok((vec![path], false));
        }
        let mut entries = Vec::new();
        self.walk(&path, MAX_DEPTH, MAX_FILES + 1, &mut entries)
            .map_err(|error| self.explain(&path, error))?;
        let is_cut = entries.len() > MAX_FILES;
        entries.truncate(MAX_FILES);
        let files = entries.into_iter().filter(|entry| entry.kind == "file");
        let mut files: Vec<String> = files.map(|entry| entry.path).collect();
        files.sort();
        Ok((files, is_cut))
    }

    pub(super) fn text(&self, path: &str) -> Result<String> {
        let name = relative(path);
        let explain = |error| self.explain(path, error);
        let file = self.root.file(&name).map_err(explain)?;
        let metadata = file.metadata().map_err(explain)?;
        if metadata.is_dir() {
            return Err(Error::IsDirectory(path.to_owned()));
        }
        if !metadata.is_file() {
            return Err(Error::Binary(path.to_owned()));
        }
        let bytes = metadata.len();
        if bytes > MAX_FILE_BYTES {
            return Err(Error::TooLarge { path: path.into(), bytes, most: MAX_FILE_BYTES });
        }
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(explain)?;
        let is_utf16 = content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]);
        if content.contains(&0) && !is_utf16 {
            return Err(Error::Binary(path.to_owned()));
        }
        String::from_utf8(content).or_else(|error| {
            let text = perihelion_mime::decoded(error.as_bytes(), None);
            let is_odd = |c: char| c.is_control() && !c.is_whitespace() && c != '\u{1b}';
            if text.contains(is_odd) { Err(Error::Binary(path.to_owned())) } else { Ok(text) }
        })
    }

    fn walk(
        &self,
        path: &str,
        depth: usize,
        most: usize,
        into: &mut Vec<Entry>,
    ) -> std::io::Result<()> {
        let mut here = Vec::new();
        for (name, found) in self.root.entries(path)? {
            let path = if path == "." { name } else { format!("{path}/{name}") };
            let kind = match SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT {
                SFlag::S_IFDIR => "directory",
                SFlag::S_IFREG => "file",
                SFlag::S_IFLNK => "link",
                _ => continue,
            };
            let bytes = if kind == "file" { u64::try_from(found.st_size).ok() } else { None };
            here.push(Entry { path, kind: kind.to_owned(), bytes });
        }
        here.sort();
        for entry in here {
            if into.len() >= most {
                return Ok(());
            }
            let below = (entry.kind == "directory" && depth > 0).then(|| entry.path.clone());
            into.push(entry);
            if let Some(below) = below {
                // One that cannot be read, or was removed since, hides none of the rest.
                let _ = self.walk(&below, depth - 1, most, into);
            }
        }
        Ok(())
    }

    fn explain(&self, path: &str, error: std::io::Error) -> Error {
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                let hint = self.hint(&path);
                Error::NotFound { path, hint }
            }
            // The system's own refusal has a number.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Error::Outside(path),
            _ => Error::Io { path, source: error },
        }
    }

    fn hint(&self, wrong: &str) -> String {
        let (files, _) = self.files(".").unwrap_or_default();
        let by_name = files.iter().find(|path| {
            Path::new(path).file_name() == Path::new(wrong).file_name() && !wrong.is_empty()
        });
        let alike = || nearest(wrong, files.iter().map(String::as_str));
        let best = by_name.map(String::as_str).or_else(alike);
        best.map_or_else(String::new, |best| format!("; did you mean {best}?"))
    }
}

/// Removes redundant parts of a relative path; the directory's own root is `.`.
fn relative(path: &str) -> String {
    let mut path = path.trim();
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    let path = if path.starts_with('/') { path } else { path.trim_end_matches('/') };
    if path.is_empty() { ".".to_owned() } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Tree) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("root");
        std::fs::create_dir_all(root.join("sub/deep")).unwrap();
        std::fs::write(home.path().join("secret.txt"), "secret").unwrap();
        std::fs::write(root.join("b.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(root.join("a.txt"), "alpha").unwrap();
        std::fs::write(root.join("sub/c.md"), "gamma").unwrap();
        std::fs::write(root.join("sub/deep/picture.png"), [0x89, b'P', 0, 1]).unwrap();
        std::os::unix::fs::symlink("../secret.txt", root.join("out")).unwrap();
        std::os::unix::fs::symlink(home.path(), root.join("away")).unwrap();
        std::os::unix::fs::symlink("..", root.join("sub/up")).unwrap();
        std::os::unix::fs::symlink("b.txt", root.join("inside")).unwrap();
        let tree = Tree::open(&Options { root, max_bytes: 1_000 }).unwrap();
        (home, tree)
    }

    #[test]
    fn dot_dot_and_absolute_paths_are_refused() {
        let (home, tree) = tree();
        let absolute = home.path().join("secret.txt");
        for path in [
            "../secret.txt",
            "sub/../../secret.txt",
            "..",
            "/etc/passwd",
            absolute.to_str().unwrap(),
        ] {
            assert!(matches!(tree.read(path, 1, 1), Err(Error::Outside(_))), "{path}");
            assert!(tree.list(path, true).is_err(), "{path}");
            assert!(tree.files(path).is_err(), "{path}");
        }
        assert_eq!(tree.read("sub/../a.txt", 1, 9).unwrap().text, "alpha\n");
    }

    #[test]
    fn links_that_leave_the_directory_are_refused_and_links_inside_it_work() {
        let (_home, tree) = tree();
        for path in ["out", "away/secret.txt", "sub/up/../secret.txt"] {
            assert!(matches!(tree.read(path, 1, 1), Err(Error::Outside(_))), "{path}");
        }
        assert!(tree.list("away", false).is_err());
        assert_eq!(tree.read("inside", 2, 1).unwrap().text, "two\n");
    }

    #[test]
    fn listings_are_sorted_and_do_not_follow_links() {
        let (_home, tree) = tree();
        let all = tree.list("", true).unwrap();
        let paths: Vec<&str> = all.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "a.txt",
                "away",
                "b.txt",
                "inside",
                "out",
                "sub",
                "sub/c.md",
                "sub/deep",
                "sub/deep/picture.png",
                "sub/up"
            ]
        );
        assert_eq!(all.entries[1].kind, "link");
        assert_eq!(tree.list("./sub/", false).unwrap().entries.len(), 3);
    }

    /// A name that is not UTF-8 cannot be opened by the text that stands for it.
    #[test]
    fn a_directory_that_cannot_be_read_hides_none_of_the_others() {
        use std::os::unix::ffi::OsStrExt as _;
        let (home, tree) = tree();
        let odd = std::ffi::OsStr::from_bytes(b"b\xff");
        std::fs::create_dir(home.path().join("root").join(odd)).unwrap();
        let listed = tree.list("", true).unwrap();
        assert!(listed.entries.iter().any(|entry| entry.path == "sub/c.md"), "{listed:?}");
        assert_eq!(tree.search("gamma", false, "", 9).unwrap().hits.len(), 1);
    }

    #[test]
    fn a_search_of_too_many_files_is_incomplete() {
        let (home, tree) = tree();
        let many = home.path().join("root/a");
        std::fs::create_dir(&many).unwrap();
        for number in 0..MAX_FILES {
            std::fs::write(many.join(number.to_string()), "").unwrap();
        }
        let found = tree.search("gamma", false, "", 9).unwrap();
        assert!(found.hits.is_empty() && found.truncated, "{found:?}");
        assert!(!tree.search("gamma", false, "sub", 9).unwrap().truncated);
    }

    #[test]
    fn binary_files_are_refused_and_missing_ones_answered_with_the_nearest() {
        let (home, tree) = tree();
        assert!(matches!(tree.read("sub/deep/picture.png", 1, 1), Err(Error::Binary(_))));
        assert!(matches!(tree.read("sub", 1, 1), Err(Error::IsDirectory(_))));
        let made = std::process::Command::new("mkfifo").arg(home.path().join("root/pipe")).status();
        assert!(made.unwrap().success());
        assert!(matches!(tree.read("pipe", 1, 1), Err(Error::Binary(_))), "nobody writes into it");
        let error = tree.read("c.md", 1, 1).unwrap_err();
        assert_eq!(error.to_string(), "no such file or directory: c.md; did you mean sub/c.md?");
    }

    #[test]
    fn a_line_that_is_cut_is_reported() {
        let (home, tree) = tree();
        std::fs::write(home.path().join("root/one.json"), "x".repeat(3_000)).unwrap();
        let read = tree.read("one.json", 1, 9).unwrap();
        assert_eq!((read.end_line, read.total_lines, read.text.len()), (1, 1, 1_004));
        assert!(read.truncated);
    }

    #[test]
    fn texts_of_other_character_sets_are_read() {
        let (home, tree) = tree();
        let root = home.path().join("root");
        std::fs::write(root.join("latin.txt"), b"gr\xfc\xdfe aus M\xfcnchen, needle").unwrap();
        let wide = "\u{feff}grüße, needle".encode_utf16().flat_map(u16::to_le_bytes);
        std::fs::write(root.join("wide.txt"), wide.collect::<Vec<u8>>()).unwrap();
        for path in ["latin.txt", "wide.txt"] {
            assert!(tree.read(path, 1, 1).unwrap().text.starts_with("grüße"), "{path}");
        }
        std::fs::write(root.join("odd"), b"needle \xff\x01\x02\x8f").unwrap();
        let found = tree.search("needle", false, "", 9).unwrap();
        assert_eq!((found.hits.len(), found.files_skipped), (2, 2));
        assert!(!tree.search("needle", false, "latin.txt", 9).unwrap().truncated);
    }

    #[test]
    fn reading_starts_and_stops_at_the_requested_lines() {
        let (_home, tree) = tree();
        let middle = tree.read("b.txt", 2, 1).unwrap();
        assert_eq!((middle.start_line, middle.end_line, middle.total_lines), (2, 2, 3));
        assert!(middle.truncated);
        assert!(!tree.read("b.txt", 2, 99).unwrap().truncated);
        assert!(matches!(tree.read("b.txt", 4, 1), Err(Error::PastTheEnd { total: 3, .. })));
    }
}
