//! Whether a statement can be answered by one shard: each table that it names is looked up by the ID of a thread or, where its
//! rows are of no thread, by a tenant.
//!
//! A table counts as looked up if its key equals a parameter, the key of a table that is looked up, or a column of a common
//! table expression, whose own tables are looked at in the same way.

use std::collections::{BTreeMap, BTreeSet};

/// The tables whose rows are of a thread, which `thread_id` names unless another column is given.
const OF_THREADS: &[&str] = &[
    "step",
    "snapshot",
    "pending",
    "effect",
    "effect_count",
    "run",
    "event",
    "blob",
    "trace_debt",
    "service_run",
    "service_thread",
    "thread_stop",
    "thread_mark",
    "conversation_word",
    "spending",
    "approval_request",
    "wake_call",
];

/// Words that end the name of a table in a statement, so that no other name follows.
const NO_NAMES: &[&str] = &[
    "where",
    "set",
    "join",
    "on",
    "left",
    "cross",
    "for",
    "order",
    "union",
    "values",
    "using",
    "limit",
    "returning",
    "select",
    "(",
    ")",
    ",",
    ";",
    "inner",
    "group",
    "from",
];

/// Returns the tables of the migrations.
pub fn tables() -> BTreeSet<String> {
    let migrations = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres");
    let mut tables = BTreeSet::new();
    for file in std::fs::read_dir(migrations).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        tables.extend(text.split("CREATE TABLE ").skip(1).map(|rest| {
            let name = rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest);
            name.split([' ', '(']).next().unwrap().to_owned()
        }));
    }
    tables
}

/// Returns the columns by which the rows of a table are found; those of a search index lie with their space, which is of one
/// tenant.
fn keys_of(table: &str) -> &'static [&'static str] {
    match table {
        "thread" => &["id"],
        "recall_space" => &["id", "tenant"],
        table if OF_THREADS.contains(&table) => &["thread_id"],
        table if table.starts_with("recall_") => &["space"],
        _ => &["tenant"],
    }
}

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    table: String,
    name: String,
    /// Whether rows are added, with their keys.
    is_added: bool,
}

fn words(statement: &str) -> Vec<String> {
    let mut spaced = statement.to_lowercase();
    for sign in ["(", ")", ",", ";", "<>", "<=", ">=", "||", "::"] {
        spaced = spaced.replace(sign, &format!(" {sign} "));
    }
    let spaced = spaced.replace(" <= ", " LE ").replace(" >= ", " GE ").replace('=', " = ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

fn places(words: &[String], tables: &BTreeSet<String>) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for (at, window) in words.windows(2).enumerate() {
        let [before, table] = window else { continue };
        let is_place = matches!(before.as_str(), "from" | "join" | "update" | "into" | "using");
        if !is_place || !tables.contains(table) {
            continue;
        }
        let mut next = words[at + 2..].iter().skip_while(|word| *word == "as");
        let alias = next.next().filter(|word| !NO_NAMES.contains(&word.as_str()));
        let name = alias.unwrap_or(table).clone();
        places.insert(Place { table: table.clone(), name, is_added: before == "into" });
    }
    places
}

/// Returns the tables of a statement that are not looked up by a thread or a tenant.
pub fn unconfined(statement: &str, tables: &BTreeSet<String>) -> Vec<String> {
    let words = words(statement);
    let places = places(&words, tables);
    let of_name: BTreeMap<&str, &Place> = places
        .iter()
        .filter(|place| !place.is_added)
        .map(|place| (place.name.as_str(), place))
        .collect();
    let mut confined: BTreeSet<&Place> = BTreeSet::new();
    loop {
        let is_fixed = |word: &str| match word.split_once('.') {
            None => word.starts_with('$'),
            Some((name, column)) => match of_name.get(name) {
                Some(place) => {
                    confined.contains(place)
                        && (column == "tenant" || keys_of(&place.table).contains(&column))
                }
                // Of a common table expression, or of what a conflict excluded.
                None => true,
            },
        };
        let is_looked_up_by = |place: &Place, key: &str| {
            if place.is_added {
                let into =
                    words.windows(2).position(|two| two[0] == "into" && two[1] == place.table);
                let columns = &words[into.unwrap_or_default()..];
                return columns.iter().take_while(|word| *word != ")").any(|word| word == key);
            }
            let qualified = format!("{}.{key}", place.name);
            let is_key = |word: &str| word == qualified || word == key;
            let is_equal = words.windows(3).any(|three| {
                three[1] == "="
                    && (is_key(&three[0]) && is_fixed(&three[2])
                        || is_key(&three[2]) && is_fixed(&three[0]))
            });
            // As in `JOIN input USING (id)`.
            let is_joined = words.windows(3).any(|three| three[0] == "using" && three[2] == key);
            is_equal || is_joined && confined.iter().any(|other| **other != *place)
        };
        let is_looked_up =
            |place: &&Place| keys_of(&place.table).iter().any(|key| is_looked_up_by(place, key));
        let more: Vec<&Place> = places
            .iter()
            .filter(|place| !confined.contains(place) && is_looked_up(place))
            .collect();
        if more.is_empty() {
            break;
        }
        confined.extend(more);
    }
    places
        .iter()
        .filter(|place| !confined.contains(place))
        .map(|place| place.table.clone())
        .collect()
}

#[test]
fn a_statement_without_the_key_of_a_table_is_found() {
    let tables = tables();
    let of = |statement: &str| unconfined(statement, &tables);
    let none: [&str; 0] = [];
    for confined in [
        "SELECT head FROM thread WHERE id = $1",
        "UPDATE service_run SET status = $1 WHERE thread_id = $2 AND id = $3",
        "SELECT 1 FROM thread t LEFT JOIN service_thread m ON m.thread_id = t.id WHERE t.id=$1",
        "WITH leased AS (UPDATE thread SET head = $2 WHERE id = $1 RETURNING id) INSERT INTO step (thread_id, seq) SELECT id, $2 FROM leased",
        "SELECT design FROM workflows WHERE tenant = $1",
        "SELECT p.name FROM thread t LEFT JOIN person p ON p.tenant = t.tenant WHERE t.id = $1",
    ] {
        assert_eq!(of(confined), none, "{confined}");
    }
    for (statement, table) in [
        ("SELECT status FROM service_run WHERE id = $1 AND tenant = $2", "service_run"),
        (
            "SELECT e.key FROM effect e JOIN thread t ON t.id = e.thread_id WHERE e.key = $1",
            "effect",
        ),
        ("DELETE FROM pending WHERE step = $1", "pending"),
        ("SELECT name FROM person WHERE name = $1", "person"),
        ("INSERT INTO run (id, status) VALUES ($1, $2)", "run"),
        (
            "SELECT 1 FROM thread t, step s WHERE t.id = $1 AND EXISTS (SELECT 1 FROM snapshot n WHERE n.seq = $2)",
            "snapshot",
        ),
    ] {
        assert!(of(statement).contains(&table.to_owned()), "{statement}");
    }
}
