//! Every column of every table of threads, altered: refused, or without consequence for what the commands say and do.

use std::collections::BTreeMap;

use crate::damage::{killed, killed_with_a_paper, notes, other};
use crate::world::World;

/// The tables of threads.
const TABLES: [&str; 8] =
    ["thread", "run", "step", "snapshot", "pending", "effect", "effect_count", "event"];

/// What only tells of a thread, for people and for schedules: shown as it stands, and without a part in what it does.
const SHOWN: [&str; 26] = [
    "thread.updated_at",
    "thread.lease_until",
    "thread.owner",
    "thread.title",
    "thread.error",
    "thread.woken",
    "thread.events",
    "thread.events_step",
    "thread.fence",
    "thread.runs",
    "thread.status",
    "thread.tenant",
    "thread.namespace",
    "run.number",
    "run.started_at",
    "run.ended_at",
    "run.status",
    "run.finish_reason",
    "step.at",
    "effect.ended_at",
    "event.at",
    "event.body",
    "event.codec",
    "event.first_id",
    "event.step",
    // A thread of another graph is read as JSON, and not resumed.
    "thread.graph",
];

/// To which run a step counts: a fork and an imported thread have steps of runs that they do not have, so none is missed.
const COUNTED: [&str; 4] = ["run.id", "run.thread_id", "step.run", "step.schema_version"];

/// What a thread's commands say, by their names; none where it was refused.
async fn words(world: &World, url: &str) -> BTreeMap<&'static str, Option<String>> {
    let commands: [(&str, &[&str]); 7] = [
        ("export", &["threads", "export", "t"]),
        ("state", &["threads", "state", "t", "--json"]),
        ("history", &["threads", "history", "t", "--json"]),
        ("trace", &["trace", "t", "--json"]),
        ("replay", &["replay", "t", "--json"]),
        ("fork", &["threads", "fork", "t", "--at", "3", "--thread", "other"]),
        ("resume", &["resume", "t", "--quiet"]),
    ];
    let mut words = BTreeMap::new();
    for (name, command) in commands {
        let done = world.run(&[&["--database", url], command].concat()).await;
        assert!(!done.stderr.contains("panicked"), "{name}: {done:#?}");
        let is_done = done.status.code() == Some(0);
        assert!(is_done || !done.stderr.trim().is_empty(), "{name} fails in silence: {done:#?}");
        words.insert(name, is_done.then_some(done.stdout));
    }
    words
}

/// X2: a flipped bit anywhere was taken by `resume`, `replay`, `export`, `trace`, `fork`, `state` or `history`.
#[tokio::test]
async fn an_altered_column_of_sqlite_is_refused_or_makes_no_difference() {
    every_column_is_refused_or_makes_no_difference(false).await;
}

/// X2
#[tokio::test]
async fn an_altered_column_of_postgres_is_refused_or_makes_no_difference() {
    every_column_is_refused_or_makes_no_difference(true).await;
}

async fn every_column_is_refused_or_makes_no_difference(is_postgres: bool) {
    let (world, original) = killed(is_postgres).await;
    assert_eq!(notes(&world), 1);
    let whole = original.copy(&world, "whole_of_all").await;
    let expected = words(&world, &whole.url()).await;
    assert!(expected.values().all(Option::is_some), "{expected:#?}");
    let mut silent = Vec::new();
    for table in TABLES {
        for (column, kind) in whole.columns(table).await {
            let name = format!("{table}_{column}");
            let copy = original.copy(&world, &name).await;
            let sql = format!("UPDATE {table} SET {column} = {}", other(&column, &kind));
            let Ok(changed @ 1..) = copy.try_execute(&sql).await else { continue };
            let found = words(&world, &copy.url()).await;
            let column = format!("{table}.{column}");
            let is_shown = SHOWN.contains(&column.as_str());
            let is_counted = COUNTED.contains(&column.as_str());
            for (command, text) in found {
                let same = text.is_none() || text == expected[command];
                // What is only shown may show; what the thread does and answers is the same.
                let may_show = (is_shown || is_counted) && command != "resume";
                if !same && !may_show {
                    silent.push(format!("{column} ({changed} rows): {command}"));
                }
            }
            assert!(notes(&world) <= 1, "{name}: the note was taken again");
        }
    }
    assert!(silent.is_empty(), "silently different:\n{}", silent.join("\n"));
}

/// X2: texts that the state names are in a table of their own.
#[tokio::test]
async fn an_altered_text_is_refused_by_name_or_makes_no_difference() {
    for is_postgres in [false, true] {
        let (world, original) = killed_with_a_paper(is_postgres).await;
        let whole = original.copy(&world, "whole_of_all").await;
        let expected = words(&world, &whole.url()).await;
        assert!(expected.values().all(Option::is_some), "{expected:#?}");
        assert!(expected["resume"].as_deref() == Some("It says so.\n"), "{expected:#?}");
        let mut damages: Vec<(String, String)> = Vec::new();
        for (column, kind) in whole.columns("blob").await {
            let value = other(&column, &kind);
            damages.push((column.clone(), format!("UPDATE blob SET {column} = {value}")));
        }
        damages.push(("row".to_owned(), "DELETE FROM blob".to_owned()));
        for (name, sql) in damages {
            let copy = original.copy(&world, &format!("blob_{name}")).await;
            assert_eq!(copy.try_execute(&sql).await.unwrap(), 1, "{sql}");
            let found = words(&world, &copy.url()).await;
            for (command, text) in &found {
                assert!(
                    text.is_none() || *text == expected[command],
                    "{name}: {command}: {text:?}"
                );
            }
            // From which step on forks share it is no part of the thread itself.
            let is_refused = name != "step";
            for command in ["export", "resume"] {
                assert_eq!(found[command].is_none(), is_refused, "{name}: {command}");
            }
            if is_refused {
                let again = ["--database", &copy.url(), "resume", "t", "--quiet"];
                let refused = world.run(&again).await;
                let names = refused.stderr.contains("the artifact attached/")
                    && refused.stderr.contains("paper.txt of the thread");
                // By its number the body is an encrypted one.
                let is_sealed =
                    name == "codec" && refused.stderr.contains("encrypted with the key");
                assert!(names || is_sealed, "{name}: {refused:#?}");
            }
        }
    }
}
