//! Which tests run: the list that `tests/all.sh` makes, by crate, binary and path.

use std::path::Path;

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
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    package: String,
    binary: String,
    modules: Vec<String>,
}

impl Place {
    /// Returns the place of a file of the program, a crate, or their tests.
    pub fn of(file: &str) -> Option<Self> {
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
        // The unit tests of a long file lie beside it, and are a module of it all the same.
        let last = modules.pop()?;
        match (last.as_str(), last.strip_suffix("_tests")) {
            ("mod" | "main" | "lib", _) => {}
            (_, Some(tested)) if is_beside(file, tested) => {
                modules.extend([tested.to_owned(), "tests".to_owned()]);
            }
            _ => modules.push(last),
        }
        Some(Self { package, binary, modules })
    }
}

fn is_beside(file: &str, tested: &str) -> bool {
    let beside = Path::new(file).with_file_name(format!("{tested}.rs"));
    let text = std::fs::read_to_string(super::root().join(beside)).unwrap_or_default();
    text.contains(&format!("#[path = \"{tested}_tests.rs\"]"))
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
fn tests_of_one_name_are_told_apart() {
    let of = |file: &str| Place::of(file).unwrap();
    let is = |line: &str, file: &str, has_attribute: bool| {
        Running::read(line).unwrap().is(&of(file), "it_holds", has_attribute)
    };
    assert!(is("perihelion::it runner::replay::it_holds", "tests/it/runner/replay.rs", true));
    assert!(is("it runner::replay::it_holds", "tests/it/runner/replay.rs", true));
    assert!(is(
        "perihelion::it runner::replay::sqlite::it_holds",
        "tests/it/runner/replay.rs",
        true
    ));
    assert!(is("perihelion::it runner::sqlite::it_holds", "tests/it/runner/replay.rs", false));
    assert!(is(
        "perihelion-recall::both merging::it_holds",
        "crates/recall/tests/both/merging.rs",
        true
    ));
    assert!(is("perihelion-sandbox::system it_holds", "crates/sandbox/tests/system.rs", true));
    assert!(is("perihelion-recall vectors::tests::it_holds", "crates/recall/src/vectors.rs", true));
    assert!(is("perihelion llm::prompts::tests::it_holds", "src/llm/prompts_tests.rs", true));
    for (line, file) in [
        ("perihelion::it runner::limits::it_holds", "tests/it/runner/replay.rs"),
        ("perihelion::service runner::replay::it_holds", "tests/it/runner/replay.rs"),
        ("perihelion-memory::both merging::it_holds", "crates/recall/tests/both/merging.rs"),
        ("perihelion::it runner::replay::it_holds_too", "tests/it/runner/replay.rs"),
    ] {
        assert!(!is(line, file, true), "{line} {file}");
    }
}
