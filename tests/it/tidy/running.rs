//! Which tests run: the list that `tests/all.sh` makes, by crate, binary and path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::sources;

/// A test that runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Running {
    /// The crate that it is of; a list of `cargo test` names none.
    package: Option<String>,
    /// The binary that it is compiled into, written as a module.
    binary: String,
    /// Its path in the binary, with its name at the end.
    path: Vec<String>,
}

impl Running {
    /// Reads a line of the list, `CRATE::BINARY PATH` or `BINARY PATH`; a crate's library is its only binary without a name of its own.
    fn read(line: &str) -> Option<Self> {
        let (id, path) = line.split_once(' ')?;
        let (package, binary) = match id.split_once("::") {
            Some((package, binary)) => (Some(package), binary.trim_start_matches("bin/")),
            None => (None, id),
        };
        let path = path.trim().split("::").map(str::to_owned).collect();
        let package = package.map(|package| package.replace('-', "_"));
        Some(Self { package, binary: binary.replace('-', "_"), path })
    }

    /// Returns whether this is a function of a file, which may stand in modules within it.
    ///
    /// A function without an attribute of its own is made a test by a macro, in the same room of the binary.
    pub fn is(&self, place: &Place, name: &str, has_attribute: bool) -> bool {
        let Self { package, binary, path } = self;
        let is_there = *binary == place.binary
            && package.as_ref().is_none_or(|package| *package == place.package)
            && path.last().is_some_and(|last| last == name);
        let room = &place.modules[..place.modules.len().min(1)];
        is_there && path.starts_with(if has_attribute { &place.modules } else { room })
    }
}

/// Where the functions of a file are when they are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    package: String,
    binary: String,
    modules: Vec<String>,
}

impl Place {
    /// Returns the place of a file of the program, a crate, or their tests, by where it lies.
    fn of(file: &str) -> Option<Self> {
        let (package, inside) = match file.strip_prefix("crates/") {
            Some(rest) => {
                let (name, inside) = rest.split_once('/')?;
                (format!("perihelion_{name}"), inside)
            }
            None => ("perihelion".to_owned(), file),
        };
        let (binary, modules) = match inside.strip_prefix("tests/") {
            Some(tests) => match tests.split_once('/') {
                Some((binary, modules)) => (binary.to_owned(), modules),
                None => (tests.trim_end_matches(".rs").to_owned(), "main.rs"),
            },
            None => (package.clone(), inside.strip_prefix("src/")?),
        };
        let modules = Path::new(modules).with_extension("");
        let mut modules: Vec<String> =
            modules.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if modules.last().is_some_and(|last| ["mod", "main", "lib"].contains(&last.as_str())) {
            modules.pop();
        }
        Some(Self { package, binary, modules })
    }
}

/// The files that a module elsewhere names, with their places there.
pub struct Places(BTreeMap<PathBuf, Vec<Place>>);

impl Places {
    pub fn read() -> Self {
        let named =
            Regex::new(r#"#\[path = "([^"]+)"\]\n(?:\s*#.*\n)*\s*(?:pub(?:\(\w+\))? )?mod (\w+);"#);
        let named = named.unwrap();
        let module = Regex::new(r"(?m)^mod (\w+);").unwrap();
        let mut places: BTreeMap<PathBuf, Vec<Place>> = BTreeMap::new();
        for source in ["src", "crates", "tests"].into_iter().flat_map(sources) {
            let Some(within) = Place::of(&source.path) else { continue };
            for found in named.captures_iter(&source.text) {
                let mut place = within.clone();
                place.modules.push(found[2].to_owned());
                let file = beside(Path::new(&source.path), &found[1]);
                places.entry(file).or_default().push(place);
            }
            // Of tests the modules of one file lie in directories beside it.
            if !source.path.contains("/tests/") || !within.modules.is_empty() {
                continue;
            }
            for found in module.captures_iter(&source.text) {
                let mut place = within.clone();
                place.modules.push(found[1].to_owned());
                let file = beside(Path::new(&source.path), &format!("{}/mod.rs", &found[1]));
                places.entry(file).or_default().push(place);
            }
        }
        Self(places)
    }

    /// Returns where a file is compiled: where it lies, and where it is named.
    pub fn of(&self, file: &str) -> Vec<Place> {
        let named = self.0.get(Path::new(file)).into_iter().flatten().cloned();
        named.chain(Place::of(file)).collect()
    }
}

/// Returns a path that is written as seen from a file's directory.
fn beside(file: &Path, path: &str) -> PathBuf {
    let mut place = file.parent().unwrap_or(Path::new("")).to_owned();
    for part in path.split('/') {
        if part == ".." {
            place.pop();
        } else {
            place.push(part);
        }
    }
    place
}

/// Reads the list; none where nobody made one, which in CI somebody must.
#[expect(clippy::print_stderr, reason = "anyone who reads the output is told what was not tested")]
pub fn list() -> Option<Vec<Running>> {
    let Some(list) = std::env::var_os("TEST_NAMES") else {
        eprintln!("TEST_NAMES is not set: `make test` lists the tests that it runs there");
        assert!(std::env::var_os("CI").is_none(), "TEST_NAMES is not set");
        return None;
    };
    let list = std::fs::read_to_string(list).unwrap();
    let running: Vec<Running> = list.lines().filter_map(Running::read).collect();
    assert!(!running.is_empty(), "nothing is listed");
    Some(running)
}

/// A function of the same name in another crate, binary or file is another test.
#[test]
fn tests_of_one_name_are_distinguished() {
    let places = Places::read();
    let is = |line: &str, file: &str, has_attribute: bool| {
        let running = Running::read(line).unwrap();
        places.of(file).iter().any(|place| running.is(place, "it_holds", has_attribute))
    };
    assert!(is(
        "perihelion-engine::it runner::replay::it_holds",
        "crates/engine/tests/it/runner/replay.rs",
        true
    ));
    assert!(is("it runner::replay::it_holds", "crates/engine/tests/it/runner/replay.rs", true));
    assert!(is(
        "perihelion-engine::it runner::replay::sqlite::it_holds",
        "crates/engine/tests/it/runner/replay.rs",
        true
    ));
    assert!(is(
        "perihelion-engine::it runner::sqlite::it_holds",
        "crates/engine/tests/it/runner/replay.rs",
        false
    ));
    assert!(is(
        "perihelion-recall::both merging::it_holds",
        "crates/recall/tests/both/merging.rs",
        true
    ));
    assert!(is("perihelion-sandbox::system it_holds", "crates/sandbox/tests/system.rs", true));
    assert!(is("perihelion-recall vectors::tests::it_holds", "crates/recall/src/vectors.rs", true));
    assert!(is(
        "perihelion-documents::library changes::it_holds",
        "crates/documents/tests/changes/mod.rs",
        true
    ));
    assert!(is("perihelion-llm prompts::tests::it_holds", "crates/llm/src/prompts_tests.rs", true));
    assert!(is(
        "perihelion-engine::it simulation_cases::it_holds",
        "crates/engine/tests/it/simulation/cases.rs",
        true
    ));
    for (line, file) in [
        (
            "perihelion-engine::it runner::limits::it_holds",
            "crates/engine/tests/it/runner/replay.rs",
        ),
        ("perihelion::service runner::replay::it_holds", "crates/engine/tests/it/runner/replay.rs"),
        ("perihelion-memory::both merging::it_holds", "crates/recall/tests/both/merging.rs"),
        (
            "perihelion-engine::it runner::replay::it_holds_too",
            "crates/engine/tests/it/runner/replay.rs",
        ),
    ] {
        assert!(!is(line, file, true), "{line} {file}");
    }
}
