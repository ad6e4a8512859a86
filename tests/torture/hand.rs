//! One process of the program: takes threads, runs them, answers their questions, until something ends it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use perihelion::checkpoint::{self, ThreadStatus};
use perihelion::clock;
use perihelion::config::{Overrides, Settings};
use perihelion::graph::{RunEvent, Wants};
use perihelion::ids::ThreadId;
use perihelion::runner::RunOptions;
use perihelion::runtime::{Answer, Error, InterruptView, Runtime, ThreadView};
use perihelion::swarm::{GraphState, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::jobs::Job;
use super::logs::{ACKS, ASKS, Ack, Log, QUESTIONS, Question, digest};
use super::plan::Plan;
use super::points;
use super::random::Random;

/// Where a hand finds everything; written by the harness.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    pub seed: u64,
    pub database: String,
    pub model: String,
    pub lease_sec: f64,
    /// Hands at a time; a job is begun by the hands of one place alone.
    pub hands: u64,
    /// Of 1,000 processes so many are stopped.
    pub zombies: u64,
}

/// The file with the setup.
pub const SETUP: &str = "setup.json";
/// The file with the numbers of the jobs that are open; replaced, never written in place.
pub const OPEN: &str = "open.json";
/// The servers file.
pub const SERVERS: &str = "mcp-servers.toml";

/// Runs `hand DIRECTORY NUMBER PLACE calm|mined`.
pub fn main(args: &[String]) -> ExitCode {
    let [directory, number, place, mood] = args else { panic!("not for people: {args:?}") };
    // The harness may be killed itself; then nobody would revive or end this process.
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).unwrap();
    let directory = PathBuf::from(directory);
    let number: u64 = number.parse().unwrap();
    let setup = std::fs::read(directory.join(SETUP)).unwrap();
    let setup: Setup = serde_json::from_slice(&setup).unwrap();
    let plan = Plan::draw(setup.seed, number, setup.zombies);
    let is_calm = mood == "calm";
    points::count(&directory, plan.mine.filter(|_| !is_calm));
    clock::skew(if is_calm { 0 } else { plan.skew });
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let random = Random::new(setup.seed, &[4, number]);
    let place = place.parse().unwrap();
    match runtime.unwrap().block_on(work(directory, setup, place, random)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hand {number}: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Hand {
    runtime: Runtime,
    directory: PathBuf,
    setup: Setup,
    place: u64,
    asks: Log,
    questions: Log,
}

async fn work(
    directory: PathBuf,
    setup: Setup,
    place: u64,
    mut random: Random,
) -> Result<(), Error> {
    let servers = directory.join(SERVERS).display().to_string();
    let lease = setup.lease_sec.to_string();
    let env = |name: &str| {
        let value = match name {
            "OPENAI_BASE_URL" => &setup.model,
            "OPENAI_MODEL" | "OPENAI_API_KEY" => "scripted",
            "PERIHELION_SERVERS" => &servers,
            "DATABASE_URL" => &setup.database,
            "PERIHELION_STORE_LEASE_SEC" => &lease,
            _ => return None,
        };
        Some(value.to_owned())
    };
    let settings = Settings::load(Overrides::default(), None, &env).unwrap();
    let runtime = Runtime::open(settings, &env).await?;
    let (asks, questions) = (Log::open(&directory, ASKS), Log::open(&directory, QUESTIONS));
    // The harness counts the time from here on.
    println!("ready");
    let hand = Hand { runtime, directory, setup, place, asks, questions };
    loop {
        let mut open = hand.open();
        if open.is_empty() {
            hand.runtime.close().await;
            return Ok(());
        }
        random.shuffle(&mut open);
        let mut is_idle = true;
        for job in open {
            match hand.attempt(job).await {
                Ok(moved) => is_idle &= !moved,
                // Somebody else's, or the database is away: the next round shows.
                Err(error) => tracing::debug!(%error, job, "not now"),
            }
        }
        if is_idle {
            clock::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Hand {
    fn open(&self) -> Vec<u64> {
        read_open(&self.directory)
    }

    /// Brings a job on if that is possible now; says whether it was.
    async fn attempt(&self, job: u64) -> Result<bool, Error> {
        let thread = Job::thread(self.setup.seed, job);
        let info = match self.runtime.store().info(thread).await {
            Ok(info) => Some(info),
            Err(checkpoint::Error::UnknownThread(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(info) = info.filter(|info| info.head > 0) else {
            if job % self.setup.hands != self.place {
                return Ok(false);
            }
            self.asks.write(&job);
            self.ask(thread, job).await?;
            return Ok(true);
        };
        match info.status {
            ThreadStatus::Idle => return Ok(false),
            ThreadStatus::Interrupted => self.answer(thread).await?,
            _ => {}
        }
        let (options, acks) = self.listening(job);
        let result = self.runtime.resume(thread, options).await;
        acks.await.unwrap();
        result.map(|_| true)
    }

    async fn ask(&self, thread: ThreadId, job: u64) -> Result<(), Error> {
        let request = Request { question: Job::question(job), ..Request::default() };
        let (options, acks) = self.listening(job);
        let result = self.runtime.ask(thread, None, request, options).await;
        acks.await.unwrap();
        result.map(drop)
    }

    /// Answers every open question of a thread, each of them always in the same way.
    async fn answer(&self, thread: ThreadId) -> Result<(), Error> {
        let view = ThreadView::read(self.runtime.store().as_ref(), thread).await?;
        for InterruptView { id, payload, kind, .. } in view.open {
            assert_eq!(kind, "outcome_unknown");
            let line = payload["request"]["arguments"]["line"].as_str().unwrap().to_owned();
            let (verdict, answer) = verdict(self.setup.seed, &id);
            self.questions.write(&Question {
                interrupt: id.clone(),
                line,
                verdict: verdict.into(),
            });
            self.runtime.answer(thread, Some(id.parse().unwrap()), answer).await?;
        }
        Ok(())
    }

    /// Listens to a run: each committed step that it is told of goes into the log.
    fn listening(&self, job: u64) -> (RunOptions<GraphState>, tokio::task::JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(64);
        let wants = Wants { updates: true, checkpoints: true, ..Wants::default() };
        let options = RunOptions { events: Some(sender), wants, ..self.runtime.run_options() };
        let log = Log::open(&self.directory, ACKS);
        (options, tokio::spawn(listen(job, log, receiver)))
    }
}

async fn listen(job: u64, log: Log, mut events: mpsc::Receiver<RunEvent<GraphState>>) {
    let mut written: Vec<(String, Value)> = Vec::new();
    while let Some(event) = events.recv().await {
        match event {
            RunEvent::Update { node, update, .. } => written.push((node, update)),
            RunEvent::Checkpoint { step, .. } => {
                let digest = digest(written.iter().map(|(node, update)| (node.as_str(), update)));
                written.clear();
                log.write(&Ack { job, step, digest });
            }
            _ => {}
        }
    }
}

/// Says how a person answers a question: always the same way, whoever puts it.
pub fn verdict(seed: u64, interrupt: &str) -> (&'static str, Answer) {
    let hash = blake3::hash(interrupt.as_bytes());
    let bits = u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap());
    match Random::new(seed, &[5, bits]).below(3) {
        0 => ("retry", Answer::OutcomeRetry),
        1 => ("skip", Answer::OutcomeSkip),
        _ => ("done", Answer::OutcomeDone { result: json!("a person says that it was done") }),
    }
}

/// Reads which jobs are open.
pub fn read_open(directory: &Path) -> Vec<u64> {
    let text = std::fs::read(directory.join(OPEN)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
