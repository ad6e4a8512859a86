//! `docs/tests.md` lists the tests of each capability: those whose doc comments name its id.
//!
//! The page is written by the test itself: `UPDATE_TESTS_PAGE=1 cargo test --test it tests_page`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use regex::Regex;

use super::features::{capabilities, ids};
use super::{report, root, sources};

const PAGE: &str = "docs/tests.md";

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

/// Tests by their files, by the capability that they show.
type Tests = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Reads the functions whose doc comments name a capability.
fn shown() -> Tests {
    let (all, id) = (ids(), Regex::new(r"\b(?:S\d\.\d\d|X\d)\b").unwrap());
    let function = Regex::new(r"^\s*(?:pub(?:\([a-z]+\))? )?(?:async )?fn (\w+)").unwrap();
    let mut tests = Tests::new();
    for source in ["src", "crates", "tests"].into_iter().flat_map(sources) {
        if ELSEWHERE.iter().any(|place| source.path.starts_with(place)) {
            continue;
        }
        let mut named = BTreeSet::new();
        let mut is_test = source.path.starts_with("tests/");
        let mut is_ignored = false;
        for line in source.text.lines().map(str::trim_start) {
            if let Some(text) = line.strip_prefix("///") {
                named.extend(id.find_iter(text).map(|found| found.as_str().to_owned()));
            } else if line.starts_with("#[") {
                is_test |= line.ends_with("test]") || line.contains("::test(");
                is_ignored |= line.starts_with("#[ignore");
            } else if let Some(found) = function.captures(line) {
                for id in named.iter().filter(|id| is_test && !is_ignored && all.contains(*id)) {
                    let of_id = tests.entry(id.clone()).or_default();
                    of_id.entry(source.path.clone()).or_default().insert(found[1].to_owned());
                }
                named.clear();
                is_test = source.path.starts_with("tests/");
                is_ignored = false;
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
         What `make test` runs for each row of [features.md](features.md): the functions whose doc comments name its id.\n\
         Written by `UPDATE_TESTS_PAGE=1 cargo test --test it tests_page`, and compared by the same test.\n",
    );
    for (id, capability) in capabilities() {
        let _ = write!(page, "\n## {id}\n\n{capability}.\n\n");
        for (file, names) in tests.get(&id).into_iter().flatten() {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "* `{file}`: {}", names.join(", "));
        }
    }
    page
}

#[test]
fn the_page_of_tests_says_what_the_tests_say() {
    let written = page(&shown());
    let path = root().join(PAGE);
    if std::env::var_os("UPDATE_TESTS_PAGE").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let is_same = std::fs::read_to_string(path).unwrap_or_default() == written;
    assert!(is_same, "{PAGE} is out of date: UPDATE_TESTS_PAGE=1 cargo test --test it tests_page");
}

#[test]
fn what_the_page_names_is_run_by_make_test() {
    let Some(running) = running() else { return };
    let mut problems = Vec::new();
    for (id, files) in shown() {
        for (file, names) in files {
            let missing = names.iter().filter(|name| !running.contains(*name));
            problems.extend(missing.map(|name| format!("{id}: {file}: {name}")));
        }
    }
    report(&problems, "`make test` does not run these: a test's doc comment alone names an id.");
}

#[test]
fn what_is_done_is_shown_by_a_test() {
    let shown = shown();
    let unshown = super::features::done().into_iter().filter(|id| !shown.contains_key(id));
    report(&unshown.collect::<Vec<_>>(), "A test's doc comment names the id that it shows.");
}

/// Returns the functions that are run as tests, by the list that `tests/all.sh` makes.
#[expect(clippy::print_stderr, reason = "anyone who reads the output is told what was not tested")]
fn running() -> Option<BTreeSet<String>> {
    let Some(list) = std::env::var_os("TEST_NAMES") else {
        eprintln!("TEST_NAMES is not set: `make test` lists the tests that it runs there");
        assert!(std::env::var_os("CI").is_none(), "TEST_NAMES is not set");
        return None;
    };
    let list = std::fs::read_to_string(list).unwrap();
    let names = list.lines().filter_map(|line| line.rsplit("::").next()?.split(' ').next_back());
    Some(names.map(str::to_owned).collect())
}
