//! Shows that the oracle sees: tampers with copies of what a run left, and expects an objection to each.

use std::path::Path;

use perihelion::checkpoint::{
    self, Claim, Commit, Encoded, Fence, RunEnd, RunStatus, StepRow, Store, ThreadStatus,
};
use perihelion::ids::{RunId, ThreadId};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::copies::Copies;
use super::jobs::{BOOK, Job, MAIL, RING};
use super::logs::{
    ACCEPTED, ACKS, ASKS, Ack, EFFECTS, Effect, Log, MODELS, ModelCall, QUESTIONS, Question, TURNS,
    lines,
};
use super::oracle::{Evidence, fingerprint, judge};
use super::turns::Turns;

/// The number of a process that there was not.
const STRANGER: u64 = u64::MAX;

/// How a promise is broken.
enum Damage {
    /// By statements on the thread `:thread`.
    Sql(&'static str),
    /// By the newest step with this in it once more, in its place and with the hash that fits.
    Repeated(&'static str),
    /// The same, with some text of it replaced by another.
    Rewritten(&'static str, [&'static str; 2]),
    /// By lines more in a log.
    Lines(&'static str, Vec<Value>),
    /// By a log without the lines that hold this.
    Without(&'static str, String),
    /// By a log in which one text stands in the place of another.
    Instead(&'static str, String, String),
    /// By a collector that saw nothing.
    Spans,
}

/// Tampers in every way with what a clean run left, and panics where the oracle does not object.
///
/// Judging is work for the processor, so each of its cores has a share of it.
pub async fn see_through_all(evidence: Evidence<'_>, database: &str) {
    let thread = last_acknowledged(evidence).await;
    let all = std::sync::Mutex::new(damages(evidence, thread).await.into_iter().enumerate());
    let copies = Mutex::new(Copies::of(database).await);
    let runtime = tokio::runtime::Handle::current();
    let work = || loop {
        let Some((number, case)) = all.lock().unwrap().next() else { return };
        runtime.block_on(see_through(evidence, thread, &copies, number, case));
    };
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().unwrap().get() {
                scope.spawn(work);
            }
        });
    });
    eprintln!("the oracle saw through every sabotage on {}", evidence.database.name());
}

/// Tampers in one way with a copy, and panics where the oracle does not object.
async fn see_through(
    evidence: Evidence<'_>,
    thread: ThreadId,
    copies: &Mutex<Copies>,
    number: usize,
    (promise, damage): (&'static str, Damage),
) {
    let home = tempfile::tempdir().unwrap();
    for log in [ACKS, ASKS, EFFECTS, QUESTIONS, ACCEPTED, MODELS, TURNS] {
        let _ = std::fs::copy(evidence.directory.join(log), home.path().join(log));
    }
    let mut received = evidence.received.clone();
    let copy = copies.lock().await.one(number).await;
    let store = checkpoint::open(&copy).await.unwrap();
    match damage {
        Damage::Sql(sql) => copies.lock().await.tamper(&copy, sql, thread).await,
        Damage::Repeated(part) => repeat(store.as_ref(), thread, part, [""; 2]).await,
        Damage::Rewritten(part, texts) => repeat(store.as_ref(), thread, part, texts).await,
        Damage::Lines(log, lines) => {
            let log = Log::open(home.path(), log);
            lines.iter().for_each(|line| log.write(line));
        }
        Damage::Without(log, part) => without(&home.path().join(log), &part),
        Damage::Instead(log, part, text) => instead(&home.path().join(log), &part, &text),
        Damage::Spans => received.clear(),
    }
    let directory = home.path();
    let store_seen = store.as_ref();
    let received = &received;
    let tampered = Evidence { store: store_seen, directory, received, ..evidence };
    let found = judge(tampered).await.violations;
    store.close().await;
    copies.lock().await.remove(&copy).await;
    // That the program cannot read it is enough only where it is named: it shows the program's own checks and not the oracle.
    assert!(found.contains_key(promise), "the oracle saw no {promise:?}, but {found:?}");
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
    let turns = Turns::read(evidence.directory);
    // Done once, in the only turn of its process, and never asked about.
    let done = |tool: &str| {
        let found = effects.iter().find(|effect| {
            let is_asked = || questions.iter().any(|question| question.line == effect.line);
            let once = || effects.iter().filter(|other| other.line == effect.line).count() == 1;
            let turns = || turns.count(thread_of(evidence, &effect.line), effect.process);
            effect.tool == tool && !effect.lost && once() && turns() == 1 && !is_asked()
        });
        found.unwrap()
    };
    let booked = done(BOOK);
    let mailed = done(MAIL);
    let rung = done(RING);
    let effect = |effect: &Effect, count: u64| {
        let line = serde_json::to_value(effect).unwrap();
        Damage::Lines(EFFECTS, (0..count).map(|_| line.clone()).collect())
    };
    let line = Job::line(u64::MAX, 0, "a", 0);
    let tool = BOOK.to_owned();
    let key = String::new();
    let process = rung.process;
    let at = rung.at;
    let nobody = Effect { process, at, tool, line, key, refused: false, lost: false };
    let stranger = Effect {
        process: STRANGER,
        line: rung.line.clone(),
        key: rung.key.clone(),
        tool: RING.to_owned(),
        ..nobody
    };
    let question = questions.first().expect("no call was found with an unknown outcome");
    let accepted = |interrupt: &str, verdict: &str| {
        let line = json!({ "interrupt": interrupt, "verdict": verdict });
        Damage::Lines(ACCEPTED, vec![line])
    };
    let asked = lines::<ModelCall>(evidence.directory, MODELS);
    let of_thread = asked.iter().find(|call| call.thread == thread.to_string());
    let of_thread = of_thread.expect("the model was asked for the thread");
    // Of any thread: asked in the only turn of its process, so that no other turn explains it a second time.
    let in_only_turn = asked.iter().find(|call| {
        let thread = call.thread.parse().expect("it is logged as the id of a thread");
        turns.count(thread, call.process) == 1
    });
    let in_only_turn = in_only_turn.expect("a process had one turn at a thread and asked in it");
    let asked_again = vec![serde_json::to_value(in_only_turn).unwrap()];
    vec![
        ("lost", Damage::Sql(
            "DELETE FROM step WHERE thread_id = :thread AND seq = (SELECT max(seq) FROM step WHERE thread_id = :thread);
             UPDATE thread SET head = head - 1 WHERE id = :thread")),
        // Gaps and broken chains the program refuses itself by now, wherever it reads a thread.
        ("unreadable", Damage::Sql("DELETE FROM step WHERE thread_id = :thread AND seq = 3")),
        ("unreadable", Damage::Sql(
            "UPDATE step SET (codec, delta) = (SELECT codec, delta FROM step WHERE thread_id = :thread AND seq = 2)
             WHERE thread_id = :thread AND seq = 3")),
        ("unreadable", Damage::Sql(
            "INSERT INTO step (thread_id, seq, run, at, schema_version, codec, kind, hash, frontier, delta)
             SELECT thread_id, seq + 1, run, at, schema_version, codec, kind, hash, frontier, delta
             FROM step WHERE thread_id = :thread AND seq = (SELECT head FROM thread WHERE id = :thread);
             UPDATE thread SET head = head + 1 WHERE id = :thread")),
        ("unreadable", Damage::Sql(
            "UPDATE step SET delta = hash WHERE thread_id = :thread AND seq = 3")),
        ("unreadable", Damage::Sql(
            "UPDATE effect SET status = 'started' WHERE thread_id = :thread AND kind = 'model'")),
        ("unreadable", Damage::Sql("DELETE FROM effect WHERE kind = 'tool'")),
        ("duplicate", Damage::Repeated("\"n\":\"qa\"")),
        ("results", Damage::Repeated("\"results\"")),
        ("unfinished", Damage::Sql("UPDATE thread SET status = 'busy' WHERE id = :thread")),
        ("unfinished", Damage::Sql(
            "UPDATE effect SET status = 'started', outcome_sum = NULL
             WHERE thread_id = :thread AND kind = 'model'")),
        ("unrecorded", Damage::Sql("DELETE FROM effect WHERE kind = 'tool'; DELETE FROM effect_count")),
        ("tasks", Damage::Rewritten("\"tasks\":[{", ["carry out ", "leave out "])),
        ("duplicate", Damage::Without(ASKS, "0".to_owned())),
        ("lost", Damage::Lines(ACKS, vec![json!({
            "thread": ThreadId::from_name("nobody's").0, "step": 1, "digest": "",
        })])),
        ("missing effect", Damage::Without(EFFECTS, format!("{:?}", booked.line))),
        ("missing effect", Damage::Without(EFFECTS, format!("{:?}", rung.line))),
        ("duplicate effect", effect(booked, 1)),
        ("duplicate not asked about", effect(mailed, 1)),
        ("sent for no reason", effect(rung, 1)),
        ("sent for no reason", effect(&stranger, 1)),
        ("effect of nobody", effect(&nobody, 1)),
        ("answer", Damage::Without(QUESTIONS, format!("{:?}", question.interrupt))),
        ("answer", accepted(&question.interrupt, "what nobody said")),
        ("answer", accepted(&ThreadId::from_name("nobody's").0.to_string(), "skip")),
        ("model never asked", Damage::Without(MODELS, format!("{:?}", thread.to_string()))),
        ("model never asked", Damage::Instead(MODELS, of_thread.messages.clone(), "0".repeat(24))),
        ("model asked for no reason", Damage::Lines(MODELS, asked_again)),
        ("model asked for no reason", Damage::Without(TURNS, format!("{:?}", thread.to_string()))),
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

/// Commits the newest step with this in it once more, with another text for it, as a process would that has the thread.
async fn repeat(store: &dyn Store, thread: ThreadId, part: &str, [old, new]: [&str; 2]) {
    let mut steps = store.history(thread, None, u32::MAX).await.unwrap().into_iter();
    let head = steps.clone().next().unwrap();
    let found = steps.find(|step| {
        let text = step.delta.to_json_bytes().unwrap();
        String::from_utf8_lossy(&text).contains(part)
    });
    let mut repeated = found.unwrap_or_else(|| panic!("no step holds {part}"));
    let delta = repeated.delta.to_json_bytes().unwrap().into_owned();
    let delta = String::from_utf8(delta).unwrap().replace(old, new);
    repeated.delta = Encoded::json_text(delta.into_bytes(), usize::MAX).unwrap();
    let lease = std::time::Duration::from_secs(60);
    let fence = store.claim(Claim::new(thread, "saboteur", lease).forced()).await.unwrap().fence;
    let run = RunId::new();
    store.begin_run(Fence::new(thread, fence), run, false).await.unwrap();
    let mut step = StepRow { seq: head.seq + 1, run, ..repeated };
    step.hash = fingerprint(&head.hash, &step).unwrap();
    let status = ThreadStatus::Busy;
    let clears_pending = false;
    let blobs = Vec::new();
    store.commit(&Commit { thread, fence, step, status, clears_pending, blobs }).await.unwrap();
    let end = RunEnd::new(RunStatus::Done, ThreadStatus::Idle);
    store.end_run(Fence::new(thread, fence), run, end).await.unwrap();
}

/// Takes the lines that hold a text out of a log.
fn without(log: &Path, part: &str) {
    let text = std::fs::read_to_string(log).unwrap();
    let rest: String = text.split_inclusive('\n').filter(|line| !line.contains(part)).collect();
    assert_ne!(text, rest, "{} has no {part}", log.display());
    std::fs::write(log, rest).unwrap();
}

/// Puts one text in the place of another in a log.
fn instead(log: &Path, part: &str, text: &str) {
    let old = std::fs::read_to_string(log).unwrap();
    let new = old.replace(part, text);
    assert_ne!(old, new, "{} has no {part}", log.display());
    std::fs::write(log, new).unwrap();
}
