//! Adding a document is killed at every point of its way, on both databases, and continued.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use perihelion_test_database::TestDatabase;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::Home;
use super::endpoint::{Asked, Endpoint, willing};

/// Where a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// Nowhere.
    None,
    /// When the endpoint has heard its chat request, before it answers.
    Describing,
    /// When the endpoint has heard its embeddings request of that number, before it answers.
    Embedding(usize),
    /// When it says that line of its progress: what stands before the line is done.
    Says(usize),
    /// When it says that the document is there.
    Added,
}

/// An endpoint that kills the process that asks it.
struct Killing {
    endpoint: Endpoint,
    armed: Arc<Mutex<Point>>,
    victim: Arc<AtomicI32>,
}

impl Killing {
    async fn start() -> Self {
        let armed = Arc::new(Mutex::new(Point::None));
        let victim = Arc::new(AtomicI32::new(0));
        let counted = Arc::new(Mutex::new(0));
        let at = Arc::clone(&armed);
        let of = Arc::clone(&victim);
        let count = Arc::clone(&counted);
        let embeddings = move |_: usize| {
            let mut count = count.lock().unwrap();
            if *at.lock().unwrap() == Point::Embedding(*count) {
                shoot(&of);
            }
            *count += 1;
            true
        };
        let at = Arc::clone(&armed);
        let of = Arc::clone(&victim);
        let chat = move |role: &str, stage: &str, body: &Value| {
            // A new story begins.
            *counted.lock().unwrap() = 0;
            if *at.lock().unwrap() == Point::Describing {
                shoot(&of);
            }
            willing(role, stage, body)
        };
        let endpoint = Endpoint::start(Arc::new(embeddings), Arc::new(chat)).await;
        Self { endpoint, armed, victim }
    }

    /// Takes what was asked since the last time.
    fn asked(&self) -> Asked {
        std::mem::take(&mut *self.endpoint.asked.lock().unwrap())
    }
}

fn shoot(victim: &AtomicI32) {
    let pid = victim.swap(0, Ordering::SeqCst);
    if pid != 0 {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
}

/// One database, and a tenant for each story in it.
struct World {
    home: Home,
    killing: Killing,
    database: String,
}

impl World {
    fn command(&self, tenant: &str, json: bool) -> tokio::process::Command {
        let mut arguments = vec!["documents", "add", "long.md", "--tenant", tenant];
        arguments.extend(json.then_some("--json"));
        let mut command = self.home.command(&arguments);
        command.env("DATABASE_URL", &self.database).env("PERIHELION_EMBEDDINGS_BATCH", "3");
        command
    }

    /// Adds the document in a process that is killed; returns its lines, and whether it was killed.
    async fn add(&self, tenant: &str, point: Point) -> (usize, bool) {
        *self.killing.armed.lock().unwrap() = point;
        let mut command = self.command(tenant, false);
        let mut process = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        self.killing.victim.store(i32::try_from(process.id().unwrap()).unwrap(), Ordering::SeqCst);
        let mut printed = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut output_text = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut lines = 0;
        while let Some(line) = printed.next_line().await.unwrap() {
            assert!(line.contains("long.md"), "{line}");
            if point == Point::Says(lines) {
                shoot(&self.killing.victim);
            }
            lines += 1;
            // The last line before the document is there.
            if line.contains("keeping") && point == Point::Added {
                output_text.next_line().await.unwrap();
                shoot(&self.killing.victim);
            }
        }
        (lines, process.wait().await.unwrap().code().is_none())
    }
}

/// How often each text was sent.
fn times(asked: &[&Asked]) -> HashMap<String, usize> {
    let mut times = HashMap::new();
    for text in asked.iter().flat_map(|one| one.embeddings.iter().flatten()) {
        *times.entry(text.clone()).or_insert(0) += 1;
    }
    times
}

async fn world(database: impl Fn(&Home) -> String) -> World {
    let killing = Killing::start().await;
    let home = Home::new(Some(killing.endpoint.url.clone()));
    let text: String = (0..8)
        .map(|n| {
            format!(
                "## Part {n}\n\nThis is about the thing {n}. {}\n\n",
                "And more of it. ".repeat(70)
            )
        })
        .collect();
    std::fs::write(home.path().join("long.md"), text).unwrap();
    let database = database(&home);
    World { home, killing, database }
}

async fn sweep(database: impl Fn(&Home) -> String) {
    let world = world(database).await;
    let (lines, killed) = world.add("whole", Point::None).await;
    assert!(!killed);
    let whole = world.killing.asked();
    let requests = whole.embeddings.len();
    let wanted = times(&[&whole]);
    assert!(requests >= 3 && whole.chats.len() == 1, "{requests} requests");
    assert_eq!(lines, requests + 3, "parsing, describing, each batch, keeping");

    let points = [Point::Describing, Point::Added]
        .into_iter()
        .chain((0..requests).map(Point::Embedding))
        .chain((0..lines).map(Point::Says));
    for point in points {
        let tenant = format!("{point:?}").replace(['(', ')'], "-");
        let (_, killed) = world.add(&tenant, point).await;
        assert!(killed || point == Point::Added, "{point:?}: it was through before");
        let before = world.killing.asked();
        *world.killing.armed.lock().unwrap() = Point::None;
        let output = world.command(&tenant, true).output().await.unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{point:?}: {printed}");
        let added: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(added["documents"][0]["version"], 1, "{point:?}: {added}");
        assert_eq!(added["documents"][0]["by_words_only"], Value::Null, "{point:?}: {added}");
        let after = world.killing.asked();

        // The same texts, and none twice but those of the request that was under way when it died.
        let sent = times(&[&before, &after]);
        let mut texts: Vec<&String> = sent.keys().collect();
        let mut all: Vec<&String> = wanted.keys().collect();
        texts.sort();
        all.sort();
        assert_eq!(texts, all, "{point:?}");
        let under_way = before.embeddings.last().cloned().unwrap_or_default();
        for (text, times) in &sent {
            assert!(*times == 1 || *times == 2 && under_way.contains(text), "{point:?}: {text}");
        }
        let described = before.chats.len() + after.chats.len();
        let was_under_way = before.embeddings.is_empty() && !before.chats.is_empty();
        assert!(described == 1 || described == 2 && was_under_way, "{point:?}: {described}");
    }
}

/// S3.05, X1: wherever adding a document is killed, the same command continues, and no model is asked the same twice.
#[tokio::test(flavor = "multi_thread")]
async fn adding_that_is_killed_anywhere_continues_and_asks_no_model_the_same_twice() {
    sweep(Home::database).await;
}

/// S3.05, X1: the same on PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn adding_that_is_killed_anywhere_continues_on_postgres() {
    let Some(database) = TestDatabase::make().await else { return };
    sweep(|_| database.url.clone()).await;
}

/// X1: what a process left is not taken for what the next one was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn adding_that_continues_with_another_batch_size_or_title_uses_it() {
    for server in [None, TestDatabase::make().await] {
        let of_server =
            |home: &Home| server.as_ref().map_or_else(|| home.database(), |one| one.url.clone());
        let world = world(of_server).await;
        world.add("whole", Point::None).await;
        let wanted = times(&[&world.killing.asked()]);
        for batch in ["1", "6"] {
            let tenant = format!("batch-{batch}");
            assert!(world.add(&tenant, Point::Embedding(2)).await.1);
            let before = world.killing.asked();
            *world.killing.armed.lock().unwrap() = Point::None;
            let mut command = world.command(&tenant, true);
            let output = command.env("PERIHELION_EMBEDDINGS_BATCH", batch).output().await.unwrap();
            assert!(output.status.success(), "{output:?}");
            let sent = times(&[&before, &world.killing.asked()]);
            let missing = wanted.keys().find(|text| !sent.contains_key(*text));
            assert_eq!(missing, None, "batches of {batch}");
        }
        assert!(world.add("title", Point::Embedding(1)).await.1);
        *world.killing.armed.lock().unwrap() = Point::None;
        let mut command = world.command("title", true);
        let output = command.args(["--title", "Final"]).output().await.unwrap();
        let added: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(added["documents"][0]["title"], "Final", "{added}");
        assert_eq!(added["documents"][0]["version"], 1, "{added}");
    }
}
