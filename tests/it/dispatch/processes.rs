//! `perihelion worker` as a process, with a scripted model: on SQLite and on Postgres.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion_test_database::TestDatabase;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::cli::world::{World, answering, clarify, ended, first, noting, reading, select, signal};
use crate::support::postgres::server;
use crate::support::proxy;

/// A machine, and the database of its processes.
pub struct Site {
    pub world: World,
    database: Option<TestDatabase>,
}

pub async fn sqlite(script: Script) -> Site {
    Site { world: World::new(script).await, database: None }
}

pub async fn postgres(script: Script) -> Site {
    let database = server().await.fresh().await;
    let mut world = World::new(script).await;
    world.set("DATABASE_URL", &database.url);
    Site { world, database: Some(database) }
}

macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod sqlite { $(#[tokio::test] async fn $name() { super::$name(super::Kind::Sqlite).await; })+ }
        mod postgres { $(#[tokio::test] async fn $name() { super::$name(super::Kind::Postgres).await; })+ }
    };
}
pub(crate) use on_both_databases;

#[derive(Clone, Copy)]
pub enum Kind {
    Sqlite,
    Postgres,
}

pub async fn site(on: Kind, script: Script) -> Site {
    match on {
        Kind::Sqlite => sqlite(script).await,
        Kind::Postgres => postgres(script).await,
    }
}

impl Site {
    /// Returns the address of the database where it is not the file in the user's directory.
    pub fn database(&self) -> Option<&str> {
        self.database.as_ref().map(|database| database.url.as_str())
    }

    /// Leaves a run to the workers.
    pub async fn submit(&self, thread: &str) -> String {
        let args = ["run", "What is it?", "--thread", thread, "--detach", "-q"];
        self.world.run(&args).await.code(0).stdout.trim().to_owned()
    }

    pub fn worker(&self) -> Child {
        self.world.start(&["worker"])
    }

    /// Waits until a thread stands so.
    pub async fn until(&self, thread: &str, status: &str) {
        loop {
            let show = self.world.run(&["threads", "show", thread, "--json"]).await.code(0).json();
            if show["status"] == status {
                return;
            }
        }
    }

    pub async fn stop(&self, worker: Child) -> String {
        signal(&worker, Signal::SIGTERM);
        ended(worker).await.code(0).stderr
    }
}

on_both_databases!(
    a_worker_finishes_submitted_runs,
    two_workers_share_many_threads,
    a_worker_that_is_stopped_hands_its_threads_over,
    an_answer_is_resumed_by_a_worker_and_followed_by_its_sender,
    a_drained_queue_ends_a_worker_that_drains,
);

async fn a_worker_finishes_submitted_runs(on: Kind) {
    let site = site(on, reading()).await;
    let thread = site.submit("t").await;
    let queued = site.world.run(&["threads", "--status", "queued"]).await.code(0);
    assert!(queued.stdout.contains(&thread[thread.len() - 8..]), "{queued:?}");
    let worker = site.worker();
    let followed = site.world.run(&["resume", "t", "-q"]).await;
    // It may have been finished before it could be followed.
    match followed.status.code() {
        Some(0) => assert_eq!(followed.stdout, "It is 42 [1].\n"),
        _ => assert!(followed.stderr.contains("is finished"), "{followed:?}"),
    }
    site.until("t", "done").await;
    let second = site.submit("u").await;
    site.until("u", "done").await;
    let words = site.stop(worker).await;
    assert!(words.contains("working on") && words.contains("stopped; completed runs:"), "{words}");
    assert!(words.contains(&format!("{second}: done; ")), "{words}");
}

async fn two_workers_share_many_threads(on: Kind) {
    let site = site(on, answering()).await;
    let names: Vec<String> = (0..12).map(|number| format!("t{number}")).collect();
    let mut threads = Vec::new();
    for name in &names {
        threads.push(site.submit(name).await);
    }
    let drain = ["worker", "--drain", "--concurrency", "3"];
    let (one, two) = futures::future::join(site.world.run(&drain), site.world.run(&drain)).await;
    let words = [one.code(0).stderr, two.code(0).stderr].concat();
    for thread in &threads {
        assert_eq!(words.matches(&format!("{thread}: done")).count(), 1, "{words}");
    }
    // Once for the supervisor and once for the answer, and never for the same thread twice.
    assert_eq!(site.world.model.requests().len(), 2 * threads.len());
}

/// Processes that submit at the same time; `SUBMITTERS` names another number.
const SUBMITTERS: usize = 24;

/// 37 G3
#[tokio::test]
async fn concurrent_submissions_to_one_new_file_are_all_complete() {
    let many = std::env::var("SUBMITTERS").ok().and_then(|many| many.parse().ok());
    let site = sqlite(answering()).await;
    let names: Vec<String> = (0..many.unwrap_or(SUBMITTERS)).map(|n| format!("p{n}")).collect();
    let submit = async |name: &String| {
        let args = ["run", "What is it?", "--thread", name, "--detach", "-q"];
        site.world.run(&args).await
    };
    let mut stored = Vec::new();
    for ended in futures::future::join_all(names.iter().map(submit)).await {
        match ended.status.code() {
            Some(0) => stored.push(ended.stdout.trim().to_owned()),
            _ => assert!(ended.stderr.contains("holds a write lock"), "{ended:?}"),
        }
    }
    assert!(!stored.is_empty());
    let drained = site.world.run(&["worker", "--drain", "--concurrency", "3"]).await.code(0).stderr;
    for thread in &stored {
        assert_eq!(drained.matches(&format!("{thread}: done")).count(), 1, "{drained}");
    }
    // Of what was refused nothing is asked: once for the supervisor and once for the answer of each that was stored.
    assert_eq!(site.world.model.requests().len(), 2 * stored.len());
}

async fn a_worker_that_is_stopped_hands_its_threads_over(on: Kind) {
    let hanging = first(Rule::new(Reply::hang()).role(Role::Qa).nth(1), noting());
    let site = site(on, hanging).await;
    let thread = site.submit("n").await;
    let worker = site.worker();
    site.world.model.wait_for_requests(6).await;
    let words = site.stop(worker).await;
    assert!(words.contains("threads to hand over: 1"), "{words}");
    assert!(words.contains(&format!("{thread}: handed over")), "{words}");
    let heir = site.world.run(&["worker", "--drain"]).await.code(0);
    heir.says(&format!("{thread}: done"));
    assert_eq!(site.world.read("notes.jsonl").lines().count(), 1);
    assert_eq!(site.world.model.requests().len(), 7, "no call was made again but QA's");
    let runs = site.world.run(&["threads", "show", "n"]).await.code(0).stdout;
    assert_eq!(runs.matches("queued").count(), 2, "submitted, and handed over: {runs}");
}

async fn an_answer_is_resumed_by_a_worker_and_followed_by_its_sender(on: Kind) {
    let script = Script::new()
        .rule(Rule::new(clarify("Which year?")).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("In 2024.")).role(Role::Qa));
    let site = site(on, script).await;
    site.submit("q").await;
    let worker = site.worker();
    site.until("q", "interrupted").await;
    let answered = site.world.run(&["resume", "q", "--message", "2024", "--json"]).await.code(0);
    let report = answered.json();
    assert_eq!((&report["status"], &report["answer"]), (&"done".into(), &"In 2024.".into()));
    assert_eq!(site.world.asked(Role::Qa), 1, "one of the two did it");
    site.stop(worker).await;
}

async fn a_drained_queue_ends_a_worker_that_drains(on: Kind) {
    let site = site(on, answering()).await;
    site.world.run(&["worker", "--drain"]).await.code(0).says("completed runs: 0");
    let thread = site.submit("t").await;
    let drained = site.world.run(&["worker", "--drain"]).await.code(0);
    drained.says(&format!("{thread}: done")).says("completed runs: 1");
    site.world.run(&["worker", "--drain", "-q"]).await.code(0);
    site.world.run(&["worker", "--concurrency", "0"]).await.code(2).says("--concurrency");
}

/// X5: a service that starts while its database restarts waits for it, and says so.
#[tokio::test]
async fn a_worker_that_starts_before_its_database_waits_for_it() {
    let mut site = postgres(reading()).await;
    let thread = site.submit("early").await;
    let is_away = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&is_away);
    let url = proxy::before(site.database().unwrap(), move |_| away.load(Ordering::SeqCst)).await;
    site.world.set("DATABASE_URL", &url);
    let mut worker = site.world.start(&["worker", "--drain"]);
    let mut lines = BufReader::new(worker.stderr.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.contains("cannot open the database"), "{first}");
    assert!(first.contains("waiting up to 60 s for the database"), "{first}");
    is_away.store(false, Ordering::SeqCst);
    let mut words = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        words.push(line);
    }
    assert!(worker.wait().await.unwrap().success(), "{words:#?}");
    assert!(words.iter().any(|line| line.contains(&format!("{thread}: done"))), "{words:#?}");
}
