//! Files: short, signed, well named, and nobody's own.

use super::{Source, program, report, rooms, root, sources};

/// Lines after which a file is split; most stay under 300.
const MOST_LINES: usize = 400;

/// The same for files of tests, which are lists more than stories.
const MOST_TEST_LINES: usize = 500;

fn all() -> Vec<Source> {
    ["src", "crates", "tests", "benches", "examples"].into_iter().flat_map(sources).collect()
}

#[test]
fn no_file_is_too_long_to_be_read_in_one_sitting() {
    let most = |source: &Source| {
        let is_code = source.inside().is_some() && !source.code().is_empty();
        if is_code { MOST_LINES } else { MOST_TEST_LINES }
    };
    let sources = all();
    let long = sources.iter().map(|one| (one, one.text.lines().count()));
    let problems: Vec<String> = long
        .filter(|(source, lines)| *lines > most(source))
        .map(|(source, lines)| format!("{}: {lines} lines", source.path))
        .collect();
    report(&problems, "Split them: one purpose per file, most files under 300 lines.");
}

#[test]
fn every_module_has_module_docs() {
    let rooms = rooms();
    let signs = program().into_iter().filter(|source| {
        let inside = source.inside().unwrap_or_default();
        inside.ends_with("/mod.rs")
            || rooms.iter().any(|room| inside == format!("{room}.rs"))
            || (inside == "lib.rs" && source.path.starts_with("crates/"))
    });
    let mut problems = Vec::new();
    for source in signs.filter(Source::is_written) {
        let sign: String = source.text.lines().take_while(|line| line.starts_with("//!")).collect();
        let inside = source.inside().unwrap_or_default();
        let is_room =
            inside == "lib.rs" || !source.is_of_a_small_crate() && inside.matches('/').count() == 1;
        if sign.is_empty() {
            problems.push(format!("{}: no sign", source.path));
        } else if is_room && !(sign.contains("Enter at") && sign.contains("nvariant")) {
            problems.push(format!("{}: not where to enter, or no invariant", source.path));
        }
    }
    report(
        &problems,
        "A mod.rs begins with //!: what the room is for, where to enter, one invariant, what is absent.",
    );
}

#[test]
fn no_file_has_a_meaningless_name() {
    let vague = ["util", "utils", "helper", "helpers", "common", "misc", "manager", "stuff"];
    let problems: Vec<String> = all()
        .into_iter()
        .filter(|source| source.path.split(['/', '.', '_']).any(|part| vague.contains(&part)))
        .map(|source| source.path)
        .collect();
    report(&problems, "Name a file after what is in it.");
}

#[test]
fn the_program_contains_no_unwrap_or_unfinished_code() {
    // Clippy sees these too, but not where a `cfg` leaves code out.
    let words = [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "#[allow("];
    let mut problems = Vec::new();
    for source in program() {
        for (number, line) in source.code().lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            for word in words.iter().filter(|word| !is_comment && line.contains(**word)) {
                problems.push(format!("{}:{}: {word}", source.path, number + 1));
            }
        }
    }
    report(&problems, "Return an error, or say why with #[expect(…, reason = …)].");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    // Put together here, so that this file does not find itself. Ada is everybody's example.
    let homes = ["/home", "/root", "/Users"].map(|home| format!("{home}/"));
    let mut texts: Vec<(String, String)> =
        all().into_iter().map(|source| (source.path, source.text)).collect();
    for directory in [
        "",
        "docs",
        "docs/decisions",
        "docs/explanation",
        "docs/guides",
        "docs/project",
        "docs/reference",
        "docs/tutorials",
        "prompts",
        ".ci",
        ".config",
        "migrations/sqlite",
        "migrations/postgres",
    ] {
        let Ok(entries) = std::fs::read_dir(root().join(directory)) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if let Ok(text) = std::fs::read_to_string(&path) {
                texts.push((path.strip_prefix(root()).unwrap().display().to_string(), text));
            }
        }
    }
    let problems: Vec<String> = texts
        .into_iter()
        .filter(|(_, text)| {
            homes.iter().any(|home| {
                text.match_indices(home.as_str())
                    .any(|(at, _)| !text[at..].starts_with("/home/ada"))
            })
        })
        .map(|(path, _)| path)
        .collect();
    report(&problems, "Absolute paths of one machine mean nothing on another.");
}
