//! Shows that the oracle sees: tampers with copies of what a run left, and expects an objection to each.

use std::path::Path;

use perihelion::checkpoint::{self, Commit, RunEnd, RunStatus, StepRow, Store, ThreadStatus};
use perihelion::ids::{RunId, ThreadId};
use serde_json::{Value, json};

use super::copies::Copies;
use super::jobs::{BOOK, Job, MAIL, RING};
use super::logs::{
    ACCEPTED, ACKS, ASKS, Ack, EFFECTS, Effect, Log, MODELS, ModelCall, QUESTIONS, Question, lines,
};
use super::oracle::{Evidence, fingerprint, judge};

/// How a promise is broken.
enum Damage {
    /// By statements on the thread `:thread`.
    Sql(&'static str),
    /// By the newest step with this in it once more, in its place and with the hash that fits.
    Repeated(&'static str),
    /// By lines more in a log.
    Lines(&'static str, Vec<Value>),
    /// By a log without the lines that hold this.
    Without(&'static str, String),
    /// By a collector that saw nothing.
    Spans,
}

/// Tampers in every way with what a clean run left, and panics where the oracle does not object.
pub async fn see_through_all(evidence: Evidence<'_>, database: &str) {
    let thread = last_acknowledged(evidence).await;
    let all = damages(evidence, thread).await;
    let mut copies = Copies::of(database).await;
    for (number, (promise, damage)) in all.into_iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        for log in [ACKS, ASKS, EFFECTS, QUESTIONS, ACCEPTED, MODELS] {
            let _ = std::fs::copy(evidence.directory.join(log), home.path().join(log));
        }
        let mut received = evidence.received.clone();
        let copy = copies.one(number).await;
        let store = checkpoint::open(&copy).await.unwrap();
        match damage {
            Damage::Sql(sql) => copies.tamper(&copy, sql, thread).await,
            Damage::Repeated(part) => repeat(store.as_ref(), thread, part).await,
            Damage::Lines(log, lines) => {
                let log = Log::open(home.path(), log);
                lines.iter().for_each(|line| log.write(line));
            }
            Damage::Without(log, part) => without(&home.path().join(log), &part),
            Damage::Spans => received.clear(),
        }
        let directory = home.path();
        let (store_seen, received) = (store.as_ref(), &received);
        let tampered = Evidence { store: store_seen, directory, received, ..evidence };
        let found = judge(tampered).await.violations;
        store.close().await;
        copies.remove(&copy).await;
        // What does not fit its checksum is not even read.
        let objected = found.contains_key(promise) || found.contains_key("unreadable");
        assert!(objected, "the oracle saw no {promise:?}, but {found:?}");
    }
    eprintln!("the oracle saw through every sabotage on {}", evidence.database.name());
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
async fn damages(evidence: Evidence<'_>, thread: ThreadId) -> Vec<(&'static str, Damage)> {
    let effects: Vec<Effect> = lines(evidence.directory, EFFECTS);
    let questions: Vec<Question> = lines(evidence.directory, QUESTIONS);
    // Done, and never asked about.
    let done = |tool: &str| {
        let found = effects.iter().find(|effect| {
            let is_asked = || questions.iter().any(|question| question.line == effect.line);
            effect.tool == tool && !effect.refused && !is_asked()
        });
        found.unwrap()
    };
    let (booked, mailed, rung) = (done(BOOK), done(MAIL), done(RING));
    let effect = |effect: &Effect, count: u64| {
        let line = serde_json::to_value(effect).unwrap();
        Damage::Lines(EFFECTS, (0..count).map(|_| line.clone()).collect())
    };
    let line = Job::line(u64::MAX, 0, "a", 0);
    let (tool, key) = (BOOK.to_owned(), String::new());
    let nobody = Effect { tool, line, key, refused: false, lost: false };
    let question = questions.first().expect("no call was found with an unknown outcome");
    let accepted = |interrupt: &str, verdict: &str| {
        let line = json!({ "interrupt": interrupt, "verdict": verdict });
        Damage::Lines(ACCEPTED, vec![line])
    };
    let claims = evidence.store.info(thread).await.unwrap().fence;
    let asked = lines::<ModelCall>(evidence.directory, MODELS);
    let of_thread = asked.iter().find(|call| call.thread == thread.to_string()).unwrap();
    let asked_again = vec![serde_json::to_value(of_thread).unwrap(); claims as usize];
    let more_claims = evidence.store.info(thread_of(evidence, &rung.line)).await.unwrap().fence;
    vec![
        ("lost", Damage::Sql(
            "DELETE FROM step WHERE thread_id = :thread AND seq = (SELECT max(seq) FROM step WHERE thread_id = :thread);
             UPDATE thread SET head = head - 1 WHERE id = :thread")),
        ("gap", Damage::Sql("DELETE FROM step WHERE thread_id = :thread AND seq = 3")),
        ("chain", Damage::Sql(
            "UPDATE step SET (codec, delta) = (SELECT codec, delta FROM step WHERE thread_id = :thread AND seq = 2)
             WHERE thread_id = :thread AND seq = 3")),
        ("chain", Damage::Sql(
            "INSERT INTO step (thread_id, seq, run, at, schema_version, codec, kind, hash, frontier, delta)
             SELECT thread_id, seq + 1, run, at, schema_version, codec, kind, hash, frontier, delta
             FROM step WHERE thread_id = :thread AND seq = (SELECT head FROM thread WHERE id = :thread);
             UPDATE thread SET head = head + 1 WHERE id = :thread")),
        ("unreadable", Damage::Sql(
            "UPDATE step SET delta = hash WHERE thread_id = :thread AND seq = 3")),
        ("duplicate", Damage::Repeated("\"n\":\"qa\"")),
        ("results", Damage::Repeated("\"results\"")),
        ("unfinished", Damage::Sql("UPDATE thread SET status = 'busy' WHERE id = :thread")),
        ("unfinished", Damage::Sql(
            "UPDATE effect SET status = 'started' WHERE thread_id = :thread AND kind = 'model'")),
        ("unrecorded", Damage::Sql("DELETE FROM effect WHERE kind = 'tool'")),
        ("duplicate", Damage::Without(ASKS, "0".to_owned())),
        ("lost", Damage::Lines(ACKS, vec![json!({
            "thread": ThreadId::from_name("nobody's").0, "step": 1, "digest": "",
        })])),
        ("missing effect", Damage::Without(EFFECTS, format!("{:?}", booked.line))),
        ("missing effect", Damage::Without(EFFECTS, format!("{:?}", rung.line))),
        ("duplicate effect", effect(booked, 1)),
        ("duplicate not asked about", effect(mailed, 1)),
        ("sent for no reason", effect(rung, more_claims)),
        ("effect of nobody", effect(&nobody, 1)),
        ("answer", Damage::Without(QUESTIONS, format!("{:?}", question.interrupt))),
        ("answer", accepted(&question.interrupt, "what nobody said")),
        ("answer", accepted(&ThreadId::from_name("nobody's").0.to_string(), "skip")),
        ("model never asked", Damage::Without(MODELS, format!("{:?}", thread.to_string()))),
        ("model asked for no reason", Damage::Lines(MODELS, asked_again)),
        ("trace", Damage::Spans),
        ("trace", Damage::Sql("INSERT INTO trace_debt (thread_id, from_run, to_run, since)
             SELECT id, 1, 1, created_at FROM thread WHERE id = :thread")),
    ]
}

/// Returns the thread whose job a line names.
fn thread_of(evidence: Evidence<'_>, line: &str) -> ThreadId {
    let job = line.split('/').next().and_then(|number| number.parse().ok()).unwrap();
    Job::thread(evidence.seed, job)
}

/// Commits the newest step with this in it once more, as a process would that has the thread.
async fn repeat(store: &dyn Store, thread: ThreadId, part: &str) {
    let mut steps = store.history(thread, None, u32::MAX).await.unwrap().into_iter();
    let head = steps.clone().next().unwrap();
    let found = steps.find(|step| {
        let text = step.delta.to_json_bytes().unwrap();
        String::from_utf8_lossy(&text).contains(part)
    });
    let repeated = found.unwrap_or_else(|| panic!("no step holds {part}"));
    let lease = std::time::Duration::from_secs(60);
    let fence = store.claim(thread, "saboteur", lease, true).await.unwrap().fence;
    let run = RunId::new();
    store.begin_run(thread, fence, run, false).await.unwrap();
    let mut step = StepRow { seq: head.seq + 1, run, ..repeated };
    step.hash = fingerprint(&head.hash, &step).unwrap();
    let (status, clears_pending, blobs) = (ThreadStatus::Busy, false, Vec::new());
    store.commit(&Commit { thread, fence, step, status, clears_pending, blobs }).await.unwrap();
    let end = RunEnd::new(RunStatus::Done, ThreadStatus::Idle);
    store.end_run(thread, fence, run, end).await.unwrap();
}

/// Takes the lines that hold a text out of a log.
fn without(log: &Path, part: &str) {
    let text = std::fs::read_to_string(log).unwrap();
    let rest: String = text.split_inclusive('\n').filter(|line| !line.contains(part)).collect();
    assert_ne!(text, rest, "{} has no {part}", log.display());
    std::fs::write(log, rest).unwrap();
}
