//! The house in order: what the compiler does not check about how the code is laid out.
//!
//! Each submodule holds one promise of `ARCHITECTURE.md` or `CONTRIBUTING.md` by reading the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

mod features;
mod files;
mod imports;
mod map;
mod observability;
mod use_tree;

/// Rooms that every other may use: they know nothing of what the program does.
const GROUND: [&str; 5] = ["ids", "clock", "failpoint", "config", "metrics"];

/// A source file of the repository.
struct Source {
    /// From the repository's root, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// Returns the room that a file under `src/` belongs to; for a file beside them, its own name.
    fn room(&self) -> &str {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
    }

    /// Returns the lines up to the unit tests, which close a file; none of a file that is all tests.
    fn code(&self) -> &str {
        let stem = self.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        let is_tests = stem == "cases" || stem.ends_with("tests") || self.path.contains("/tests/");
        if is_tests {
            return "";
        }
        let module = self.text.find("\n#[cfg(test)]\nmod ").unwrap_or(self.text.len());
        &self.text[..module]
    }

    /// Returns whether the file has anything but comments in it.
    fn is_written(&self) -> bool {
        self.text.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Reads every Rust file below a directory, in order of their paths.
fn sources(directory: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    walk(&root().join(directory), &mut paths);
    let mut sources: Vec<Source> = paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let relative = path.strip_prefix(root()).unwrap();
            Source { path: relative.to_string_lossy().replace('\\', "/"), text }
        })
        .collect();
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, paths),
            false => paths.push(path),
        }
    }
}

/// Returns the names of the rooms: the modules that `src/lib.rs` declares.
fn rooms() -> BTreeSet<String> {
    let lib = read("src/lib.rs");
    let names = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// Fails with a list of what is wrong and the way out.
fn report(problems: &[String], way_out: &str) {
    assert!(problems.is_empty(), "\n  {}\n{way_out}\n", problems.join("\n  "));
}
