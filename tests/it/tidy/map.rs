//! `ARCHITECTURE.md` describes the rooms that there are.

use std::collections::BTreeSet;

use super::{imports, read, rooms};

#[test]
fn the_map_lists_exactly_the_modules() {
    let map = read("ARCHITECTURE.md");
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let below = ["src/", super::ENGINE, "crates/"];
    let listed: BTreeSet<String> = rows
        .filter_map(|row| below.iter().find_map(|directory| row.strip_prefix(directory)))
        .map(|name| name.trim_end_matches('/').trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(
        listed,
        rooms(),
        "left: the table of rooms in ARCHITECTURE.md, right: src/lib.rs and crates/"
    );
}

#[test]
fn the_diagram_shows_exactly_the_modules() {
    // The program may use them all.
    let rooms = rooms().into_iter().filter(|room| room != "cli" && room != "demo");
    let rooms: BTreeSet<String> = rooms.chain(["engine".to_owned()]).collect();
    let shown = imports::shown();
    assert_eq!(shown, rooms, "left: the diagram in ARCHITECTURE.md, right: src/lib.rs and crates/");
}

#[test]
fn the_documents_speak_of_files_that_exist() {
    let mut missing = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(document);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let path = link.split('#').next().unwrap_or(link);
            if !super::root().join(path).exists() {
                missing.push(format!("{document}: {link}"));
            }
        }
    }
    super::report(&missing, "Fix the link or the file.");
}
