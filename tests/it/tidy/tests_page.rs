//! `docs/project/tests.md` lists the tests of each capability: those whose doc comments name its id.
//!
//! The page is written by the test itself: `UPDATE_TESTS_PAGE=1 cargo test --test it tests_page`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use regex::Regex;

use super::features::{capabilities, ids};
use super::running::{self, Places, Running};
use super::{report, root, sources};

const PAGE: &str = "docs/project/tests.md";

/// What runs by a target of its own, beside `make test`.
const ELSEWHERE: [&str; 7] = [
    "tests/backends/",
    "tests/clients/",
    "tests/conformance/",
    "tests/page/",
    "tests/servers/",
    "tests/torture/",
    "tests/fixtures/",
];

/// The tests of a file, and whether an attribute there makes each one.
type OfFile = BTreeMap<String, bool>;

/// Tests by their files, by the capability that they show.
type Tests = BTreeMap<String, BTreeMap<String, OfFile>>;

/// Reads the functions whose doc comments name a capability.
fn shown() -> Tests {
    let all = ids();
    let id = Regex::new(r"\b(?:S\d\.\d\d|X\d+)\b").unwrap();
    let function = Regex::new(r"^\s*(?:pub(?:\([a-z]+\))? )?(?:async )?fn (\w+)").unwrap();
    let mut tests = Tests::new();
    for source in ["src", "crates", "tests"].into_iter().flat_map(sources) {
        if ELSEWHERE.iter().any(|place| source.path.starts_with(place)) {
            continue;
        }
        let mut named = BTreeSet::new();
        let is_in_tests = source.path.starts_with("tests/");
        let mut is_ignored = false;
        let mut has_attribute = false;
        for line in source.text.lines().map(str::trim_start) {
            if let Some(text) = line.strip_prefix("///") {
                named.extend(id.find_iter(text).map(|found| found.as_str().to_owned()));
            } else if line.starts_with("#[") {
                has_attribute |= line.ends_with("test]") || line.contains("::test(");
                // A build with features of its own is none that `make test` makes.
                is_ignored |= line.starts_with("#[ignore") || line.starts_with("#[cfg(feature");
            } else if let Some(found) = function.captures(line) {
                let runs = (is_in_tests || has_attribute) && !is_ignored;
                for id in named.iter().filter(|id| runs && all.contains(*id)) {
                    let of_file = tests.entry(id.clone()).or_default();
                    let of_file = of_file.entry(source.path.clone()).or_default();
                    of_file.insert(found[1].to_owned(), has_attribute);
                }
                named.clear();
                is_ignored = false;
                has_attribute = false;
            } else if line.ends_with(['{', '}', ';']) || line.is_empty() {
                named.clear();
            }
        }
    }
    tests
}

fn page(tests: &Tests) -> String {
    let mut page = String::from(
        "# Tests by capability\n\n\
         The tests that `make test` runs for each [capability](../features.md): functions whose doc comments name its ID.\n\
         A test compares this page with them; `UPDATE_TESTS_PAGE=1 cargo test --test it tests_page` updates it.\n",
    );
    for (id, capability) in capabilities() {
        let _ = write!(page, "\n## {id}\n\n{capability}.\n\n");
        for (file, names) in tests.get(&id).into_iter().flatten() {
            let names: Vec<String> = names.keys().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "* `{file}`: {}", names.join(", "));
        }
    }
    page
}

#[test]
fn the_page_of_tests_matches_the_tests() {
    let written = page(&shown());
    let path = root().join(PAGE);
    if std::env::var_os("UPDATE_TESTS_PAGE").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let is_same = std::fs::read_to_string(path).unwrap_or_default() == written;
    assert!(is_same, "{PAGE} is out of date: UPDATE_TESTS_PAGE=1 cargo test --test it tests_page");
}

#[test]
fn tests_named_on_the_page_are_run_by_make_test() {
    let Some(running) = running::list() else { return };
    let places = Places::read();
    let mut problems = Vec::new();
    for (id, files) in shown() {
        for (file, names) in files {
            let places = places.of(&file);
            let is_missing = |(name, has_attribute): &(&String, &bool)| {
                let is_it =
                    |one: &Running| places.iter().any(|place| one.is(place, name, **has_attribute));
                !running.iter().any(is_it)
            };
            let missing = names.iter().filter(is_missing);
            problems.extend(missing.map(|(name, _)| format!("{id}: {file}: {name}")));
        }
    }
    report(&problems, "`make test` does not run these: a test's doc comment alone names an id.");
}

#[test]
fn finished_capabilities_have_a_test() {
    let shown = shown();
    let unshown = super::features::done().into_iter().filter(|id| !shown.contains_key(id));
    report(&unshown.collect::<Vec<_>>(), "A test's doc comment names the id that it shows.");
}
