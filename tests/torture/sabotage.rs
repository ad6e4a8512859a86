//! Shows that the oracle sees: tampers with copies of what a run left, and expects an objection to each.

use std::path::Path;

use perihelion::checkpoint;
use perihelion::ids::ThreadId;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::hand::Setup;
use super::jobs::{BOOK, Job, MAIL};
use super::logs::{ACKS, ASKS, Ack, EFFECTS, Effect, Log, QUESTIONS, Question, lines};
use super::oracle::{Evidence, judge};

/// How a promise is broken.
enum Damage {
    /// By statements on the thread `:thread`.
    Sql(&'static str),
    /// By a line more in a log.
    Line(&'static str, serde_json::Value),
    /// By a log without the lines that hold this.
    Without(&'static str, String),
    /// By a collector that saw nothing.
    Spans,
}

/// Tampers in every way with what a clean run on SQLite left, and panics where the oracle does not object.
pub async fn see_through_all(evidence: Evidence<'_>, setup: &Setup) {
    let database = setup.database.strip_prefix("sqlite:").unwrap();
    let thread = last_acknowledged(evidence).await;
    for (promise, damage) in damages(evidence) {
        let home = tempfile::tempdir().unwrap();
        for log in [ACKS, ASKS, EFFECTS, QUESTIONS] {
            let _ = std::fs::copy(evidence.directory.join(log), home.path().join(log));
        }
        let mut received = evidence.received.clone();
        let copy = home.path().join("threads.db");
        // One file, whatever the log beside the original holds.
        let mut original = SqliteConnection::connect(&format!("sqlite:{database}")).await.unwrap();
        let into = format!("VACUUM INTO '{}'", copy.display());
        original.execute(sqlx::AssertSqlSafe(into)).await.unwrap();
        original.close().await.unwrap();
        match damage {
            Damage::Sql(sql) => tamper(&copy, sql, thread).await,
            Damage::Line(log, line) => Log::open(home.path(), log).write(&line),
            Damage::Without(log, part) => {
                let text = std::fs::read_to_string(home.path().join(log)).unwrap();
                let rest: String = text
                    .lines()
                    .filter(|line| !line.contains(&part))
                    .map(|l| l.to_owned() + "\n")
                    .collect();
                assert_ne!(text, rest, "{log} has no {part}");
                std::fs::write(home.path().join(log), rest).unwrap();
            }
            Damage::Spans => received.clear(),
        }
        let store = checkpoint::open(&format!("sqlite:{}", copy.display())).await.unwrap();
        let tampered = Evidence {
            store: store.as_ref(),
            directory: home.path(),
            received: &received,
            ..evidence
        };
        let found = judge(tampered).await.violations;
        store.close().await;
        // What does not fit its checksum is not even read.
        let objected = found.contains_key(promise) || found.contains_key("unreadable");
        assert!(objected, "the oracle saw no {promise:?}, but {found:?}");
    }
    eprintln!("the oracle saw through every sabotage");
}

/// Returns a thread whose last step a listener was told of.
async fn last_acknowledged(evidence: Evidence<'_>) -> ThreadId {
    for Ack { thread, step, .. } in lines(evidence.directory, ACKS) {
        if evidence.store.info(thread).await.unwrap().head == step {
            return thread;
        }
    }
    panic!("no thread's last step was acknowledged");
}

/// Each promise, by the name of its violation, with a way to break it.
fn damages(evidence: Evidence<'_>) -> Vec<(&'static str, Damage)> {
    let effects: Vec<Effect> = lines(evidence.directory, EFFECTS);
    let questions: Vec<Question> = lines(evidence.directory, QUESTIONS);
    // Done, and never asked about.
    let done = |tool: &str| {
        effects.iter().find(|effect| {
            let is_asked = || questions.iter().any(|question| question.line == effect.line);
            effect.tool == tool && !effect.refused && !is_asked()
        })
    };
    let (booked, mailed) = (done(BOOK).unwrap(), done(MAIL).unwrap());
    let (tool, key) = (BOOK.to_owned(), String::new());
    let nobody = Effect { tool, line: Job::line(u64::MAX, 0, "a", 0), key, refused: false };
    let effect = |effect: &Effect| Damage::Line(EFFECTS, serde_json::to_value(effect).unwrap());
    vec![
        ("lost", Damage::Sql(
            "DELETE FROM step WHERE thread_id = :thread AND seq = (SELECT max(seq) FROM step WHERE thread_id = :thread);
             UPDATE thread SET head = head - 1 WHERE id = :thread")),
        ("gap", Damage::Sql("DELETE FROM step WHERE thread_id = :thread AND seq = 3")),
        ("chain", Damage::Sql(
            "UPDATE step SET (codec, delta) = (SELECT codec, delta FROM step WHERE thread_id = :thread AND seq = 2)
             WHERE thread_id = :thread AND seq = 3")),
        ("chain", Damage::Sql(
            "INSERT INTO step SELECT thread_id, seq + 1, run, at, schema_version, codec, kind, hash, frontier, delta
             FROM step WHERE thread_id = :thread AND seq = (SELECT head FROM thread WHERE id = :thread);
             UPDATE thread SET head = head + 1 WHERE id = :thread")),
        ("unfinished", Damage::Sql("UPDATE thread SET status = 'busy' WHERE id = :thread")),
        ("unfinished", Damage::Sql(
            "UPDATE effect SET status = 'started' WHERE thread_id = :thread AND kind = 'model'")),
        ("unrecorded", Damage::Sql("DELETE FROM effect WHERE kind = 'tool'")),
        ("duplicate", Damage::Without(ASKS, "0".to_owned())),
        ("lost", Damage::Line(ACKS, json!({
            "thread": ThreadId::from_name("nobody's").0, "step": 1, "digest": "",
        }))),
        ("missing effect", Damage::Without(EFFECTS, format!("{:?}", booked.line))),
        ("duplicate effect", effect(booked)),
        ("duplicate not asked about", effect(mailed)),
        ("effect of nobody", effect(&nobody)),
        ("trace", Damage::Spans),
        ("trace", Damage::Sql("INSERT INTO trace_debt VALUES (:thread, 1, 1, 0)")),
    ]
}

async fn tamper(database: &Path, sql: &'static str, thread: ThreadId) {
    let mut connection =
        SqliteConnection::connect(&format!("sqlite:{}", database.display())).await.unwrap();
    for statement in sql.split(';') {
        let id = thread.to_string().replace('-', "");
        let statement = statement.replace(":thread", &format!("x'{id}'"));
        let done = connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
        assert!(done.rows_affected() > 0, "no such row: {sql}");
    }
    connection.close().await.unwrap();
}
