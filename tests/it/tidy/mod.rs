//! The house in order: what the compiler does not check about how the code is laid out.
//!
//! Each submodule holds one promise of `ARCHITECTURE.md` or `CONTRIBUTING.md` by reading the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

mod circles;
mod commands;
mod comments;
mod deploy;
mod engine_tree;
mod english;
mod features;
mod files;
mod imports;
mod layers;
mod links;
mod map;
mod messages;
mod observability;
mod plain_code;
mod reference;
mod running;
mod tests_page;
mod twice;
mod use_tree;
mod words;

/// Rooms that every other may use: they know nothing of what the program does.
const GROUND: [&str; 5] = ["ids", "clock", "failpoint", "observer", "settings"];

/// The crate whose modules are rooms; any other crate beside the program is one room.
const ENGINE: &str = "crates/engine/src/";

/// A source file of the repository.
struct Source {
    /// From the repository's root, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// Returns the room that a file of the program, the engine or another crate belongs to; for any other file, its first directory.
    fn room(&self) -> &str {
        let inside = match self.path.strip_prefix("src/").or_else(|| self.path.strip_prefix(ENGINE))
        {
            Some(inside) => inside,
            None => self.path.strip_prefix("crates/").unwrap_or(&self.path),
        };
        inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
    }

    /// Returns whether the file is in a crate that is one room.
    fn is_of_a_small_crate(&self) -> bool {
        self.path.starts_with("crates/") && !self.path.starts_with(ENGINE)
    }

    /// Returns the path below its crate's `src`; none for what is not compiled into a library or program.
    fn inside(&self) -> Option<&str> {
        let of_crate =
            || self.path.strip_prefix("crates/")?.split_once("/src/").map(|(_, path)| path);
        self.path.strip_prefix("src/").or_else(of_crate)
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
        if path.is_dir() { walk(&path, paths) } else { paths.push(path) }
    }
}

/// Reads the program and the crates beside it.
fn program() -> Vec<Source> {
    let all = ["src", "crates"].into_iter().flat_map(sources);
    // What only tests use may end at what it did not expect, as they do.
    let is_test = |source: &Source| source.path.starts_with("crates/test_database/");
    all.filter(|source| source.inside().is_some() && !is_test(source)).collect()
}

/// Returns the names of the rooms: the modules of the program and of the engine, and the other crates.
fn rooms() -> BTreeSet<String> {
    let engine = rooms_of_the_engine().into_iter();
    engine.chain(modules("src/lib.rs")).chain(small_crates()).collect()
}

fn rooms_of_the_engine() -> Vec<String> {
    modules(&format!("{ENGINE}lib.rs"))
}

fn modules(lib: &str) -> Vec<String> {
    let lib = read(lib);
    let modules = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    modules.map(str::to_owned).collect()
}

/// Returns the directories of the crates that are one room each.
fn small_crates() -> impl Iterator<Item = String> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "engine")
}

/// Fails with a list of what is wrong and the way out.
fn report(problems: &[String], way_out: &str) {
    assert!(problems.is_empty(), "\n  {}\n{way_out}\n", problems.join("\n  "));
}
