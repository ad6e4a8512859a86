//! What SQLite and Postgres say alike stands once.

use std::collections::BTreeMap;

use super::{report, sources};

const ROOMS: [&str; 3] = ["sqlite", "postgres", "both"];

/// Returns the statements of a room of the databases, with the files that hold them; placeholders are written one way.
fn statements(room: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for source in sources(&format!("crates/engine/src/checkpoint/{room}")) {
        for literal in source.code().split('"').skip(1).step_by(2) {
            let words: Vec<_> = literal.split_whitespace().collect();
            let verbs = ["SELECT", "INSERT", "UPDATE", "DELETE"];
            if words.iter().any(|word| verbs.contains(word)) {
                found.insert(words.join(" ").replace('?', "$"), source.path.clone());
            }
        }
    }
    found
}

#[test]
fn no_statement_of_a_store_is_written_twice_for_two_databases() {
    let rooms = ROOMS.map(statements);
    assert!(rooms.iter().all(|room| room.len() > 5), "the statements are not found any more");
    let mut twice = Vec::new();
    for (at, room) in rooms.iter().enumerate() {
        for (statement, file) in room {
            let others = rooms[at + 1..].iter().filter_map(|other| other.get(statement));
            twice.extend(others.map(|other| format!("{file} and {other}: {statement}")));
        }
    }
    report(&twice, "let one stand in crates/engine/src/checkpoint/both");
}
