//! `docs/features.md` says of every capability how it stands, and where its code is.

use std::collections::{BTreeMap, BTreeSet};

use super::{read, report, root, sources};

/// How many capabilities each chapter has.
const CHAPTERS: [(&str, u32); 4] = [("S1", 13), ("S2", 12), ("S3", 13), ("S4", 10)];

/// Paths in a row: where to begin reading, not all that there is.
const MOST_PATHS: usize = 5;

/// Promises that go beyond the chapters.
const PROMISES: u32 = 13;

pub fn ids() -> BTreeSet<String> {
    let chapters = CHAPTERS.into_iter().flat_map(|(chapter, count)| {
        (1..=count).map(move |number| format!("{chapter}.{number:02}"))
    });
    chapters.chain((1..=PROMISES).map(|number| format!("X{number}"))).collect()
}

/// One row of the table, whose first cell is a link from the id to the tests that show it.
struct Capability {
    link: String,
    what: String,
    status: String,
    code: String,
}

/// Reads the table, by id.
fn rows() -> BTreeMap<String, Capability> {
    let table = read("docs/features.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").map(|cell| cell.trim().to_owned()));
    cells
        .filter_map(|cells| {
            let cells: Vec<String> = cells.collect();
            let id = cells[0].strip_prefix('[')?.split_once(']')?.0.to_owned();
            let [link, what, status, code] = <[String; 4]>::try_from(cells)
                .unwrap_or_else(|cells| panic!("{id}: four columns are wanted: {cells:?}"));
            Some((id, Capability { link, what, status, code }))
        })
        .collect()
}

/// Returns what each id stands for.
pub fn capabilities() -> BTreeMap<String, String> {
    rows().into_iter().map(|(id, row)| (id, row.what)).collect()
}

/// Returns the ids of what is done.
pub fn done() -> Vec<String> {
    let done = rows().into_iter().filter(|(_, row)| row.status == "done");
    done.map(|(id, _)| id).collect()
}

#[test]
fn every_capability_has_its_row() {
    assert_eq!(rows().into_keys().collect::<BTreeSet<_>>(), ids());
}

#[test]
fn everything_that_a_row_names_exists() {
    let mut problems = Vec::new();
    for (id, row) in rows() {
        let anchor = id.to_lowercase().replace('.', "");
        if row.link != format!("[{id}](project/tests.md#{anchor})") {
            problems.push(format!("{id}: its tests stand at project/tests.md#{anchor}"));
        }
        if !["done", "part", "open"].contains(&row.status.as_str()) {
            problems.push(format!("{id}: the status is done, part or open: {}", row.status));
        }
        let paths = quoted(&row.code);
        if paths.len() > MOST_PATHS {
            problems.push(format!("{id}: {} paths, at most: {MOST_PATHS}", paths.len()));
        }
        let missing = paths.into_iter().filter(|path| !root().join(path).exists());
        problems.extend(missing.map(|path| format!("{id}: there is no {path}")));
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
