//! `docs/features.md` says of every capability how it stands, and names the tests that show it.

use std::collections::{BTreeMap, BTreeSet};

use super::{read, report, root, sources};

/// How many capabilities each chapter has.
const CHAPTERS: [(&str, u32); 4] = [("S1", 13), ("S2", 12), ("S3", 13), ("S4", 10)];

/// Promises that go beyond the chapters.
const PROMISES: u32 = 7;

fn ids() -> BTreeSet<String> {
    let chapters = CHAPTERS.into_iter().flat_map(|(chapter, count)| {
        (1..=count).map(move |number| format!("{chapter}.{number:02}"))
    });
    chapters.chain((1..=PROMISES).map(|number| format!("X{number}"))).collect()
}

/// One row of the table: id, capability, status, code, tests.
fn rows() -> BTreeMap<String, Vec<String>> {
    let table = read("docs/features.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>())
        .filter(|cells| cells[0].starts_with(['S', 'X']))
        .map(|cells| (cells[0].clone(), cells))
        .collect()
}

#[test]
fn every_capability_has_its_row() {
    assert_eq!(rows().into_keys().collect::<BTreeSet<_>>(), ids());
}

#[test]
fn what_a_row_names_exists() {
    let mut problems = Vec::new();
    for (id, cells) in rows() {
        let [_, _, status, code, tests] = cells.as_slice() else {
            problems.push(format!("{id}: five columns are wanted"));
            continue;
        };
        if !["done", "part", "open"].contains(&status.as_str()) {
            problems.push(format!("{id}: the status is done, part or open: {status}"));
        }
        let tests: Vec<&str> = quoted(tests);
        if status == "done" && tests.is_empty() {
            problems.push(format!("{id}: done, but no test shows it"));
        }
        let missing = quoted(code).into_iter().filter(|path| !root().join(path).exists());
        problems.extend(missing.map(|path| format!("{id}: there is no {path}")));
        for test in tests {
            let Some((file, name)) = test.split_once("::") else {
                problems.push(format!("{id}: a test is named file::function: {test}"));
                continue;
            };
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            // The page's tests are JavaScript, and named in words.
            let begins = match file.ends_with(".mjs") {
                true => format!("test(\"{name}\""),
                false => format!("fn {name}("),
            };
            if !text.contains(&begins) {
                problems.push(format!("{id}: there is no test {test}"));
            }
        }
    }
    report(&problems, "docs/features.md names what is there; fix the row.");
}

#[test]
fn the_code_speaks_of_capabilities_that_exist() {
    let ids = ids();
    let chapters: Vec<String> = CHAPTERS.iter().map(|(chapter, _)| format!("{chapter}.")).collect();
    let mut problems = Vec::new();
    for source in ["src", "crates", "tests", "benches"].into_iter().flat_map(sources) {
        for chapter in &chapters {
            for (at, _) in source.text.match_indices(chapter.as_str()) {
                let id: String = source.text[at..].chars().take(5).collect();
                let is_id = id[3..].chars().all(|c| c.is_ascii_digit()) && id.len() == 5;
                let is_alone = !source.text[..at].ends_with(|c: char| c.is_alphanumeric());
                if is_id && is_alone && !ids.contains(&id) {
                    problems.push(format!("{}: {id}", source.path));
                }
            }
        }
    }
    report(&problems, "docs/features.md lists the ids.");
}

/// Returns what stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}
