//! One process of the program: a worker, or somebody who asks, answers and resumes, until something ends it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use perihelion::checkpoint::{self, ThreadStatus};
use perihelion::clock;
use perihelion::config::{Overrides, Settings};
use perihelion::ids::ThreadId;
use perihelion::runtime::{Answer, Error, InterruptView, LOCAL_TENANT, Runtime, ThreadView};
use perihelion::service;
use perihelion::swarm::Request;
use perihelion::worker::Worker;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::jobs::Job;
use super::listening::Listening;
use super::logs::{ACCEPTED, ASKS, Accepted, Log, QUESTIONS, Question};
use super::plan::Plan;
use super::points;
use super::random::Random;

/// Where a hand finds everything; written by the harness.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    pub seed: u64,
    pub database: String,
    pub model: String,
    /// Where traces are sent.
    pub collector: String,
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
/// The variable with the token by which the receiver knows the process.
pub const TOKEN: &str = "TORTURE_HAND";
/// What the token of every process begins with; its number follows.
const TOKEN_BEGINNING: &str = "torture-hand-";

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
    match runtime.unwrap().block_on(work(directory, number, setup, place, is_calm, random)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hand {number}: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Hand {
    runtime: Arc<Runtime>,
    directory: PathBuf,
    listening: Listening,
    setup: Setup,
    place: u64,
    asks: Log,
    questions: Log,
    accepted: Log,
}

async fn work(
    directory: PathBuf,
    number: u64,
    setup: Setup,
    place: u64,
    is_calm: bool,
    mut random: Random,
) -> Result<(), service::Error> {
    let runtime = Arc::new(open(&directory, number, &setup).await?);
    let [asks, questions, accepted] =
        [ASKS, QUESTIONS, ACCEPTED].map(|name| Log::open(&directory, name));
    // The harness counts the time from here on.
    let _ = writeln!(std::io::stdout(), "ready");
    let listening = Listening { directory: directory.clone(), process: number };
    let hand = Hand { runtime, directory, listening, setup, place, asks, questions, accepted };
    let stop = CancellationToken::new();
    // Some only work, some only see to threads as people do, some do both.
    let part = random.below(3);
    let works = is_calm || part != 1;
    let sees = is_calm || part != 0;
    let working = async {
        if works {
            hand.worker().run(stop.clone()).await?;
        }
        Ok::<_, service::Error>(())
    };
    let seeing = async {
        while !read_open(&hand.directory).is_empty() {
            if !sees || !hand.see_to_all(&mut random).await {
                clock::sleep(Duration::from_millis(20)).await;
            }
        }
        stop.cancel();
        Ok(())
    };
    futures::future::try_join(working, seeing).await?;
    let runtime = Arc::into_inner(hand.runtime).expect("nobody uses it any more");
    runtime.close().await;
    Ok(())
}

/// Assembles the program as the process with a number does that is started in the directory.
pub async fn open(directory: &Path, number: u64, setup: &Setup) -> Result<Runtime, Error> {
    let servers = directory.join(SERVERS).display().to_string();
    let lease = setup.lease_sec.to_string();
    let token = format!("{TOKEN_BEGINNING}{number}");
    let env = |name: &str| {
        let value = match name {
            "OPENAI_BASE_URL" => &setup.model,
            "OPENAI_MODEL" => "scripted",
            "PERIHELION_MODELS_PROTOCOL" => "full",
            "OPENAI_API_KEY" | TOKEN => &token,
            "PERIHELION_SERVERS" => &servers,
            "DATABASE_URL" => &setup.database,
            "OTEL_EXPORTER_OTLP_ENDPOINT" => &setup.collector,
            "PERIHELION_STORE_LEASE_SEC" => &lease,
            _ => return None,
        };
        Some(value.to_owned())
    };
    let settings = Settings::load(Overrides::default(), None, &env).unwrap();
    Runtime::builder(settings, perihelion::agents::kinds()).environment(&env).open().await
}

impl Hand {
    /// The worker that `perihelion worker` runs, with somebody who listens to its steps.
    fn worker(&self) -> Worker {
        let listening = self.listening.clone();
        let options = move |thread, options| listening.to(thread, options).0;
        Worker::new(Arc::clone(&self.runtime), false, Arc::new(|_| {}))
            .with_options(Arc::new(options))
    }

    /// Looks at every open job once; says whether any was moved.
    async fn see_to_all(&self, random: &mut Random) -> bool {
        let mut open = read_open(&self.directory);
        random.shuffle(&mut open);
        let mut is_moved = false;
        for job in open {
            // An error means that it is somebody else's, or that the database is away: later, then.
            is_moved |= self.see_to(job, random).await.unwrap_or(false);
        }
        is_moved
    }

    /// Brings a job on as a person would, if that is possible now; says whether it was.
    async fn see_to(&self, job: u64, random: &mut Random) -> Result<bool, Error> {
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
            self.ask(thread, job, random.per_mille(500)).await?;
            return Ok(true);
        };
        match info.status {
            ThreadStatus::Idle => return Ok(false),
            ThreadStatus::Interrupted => self.answer(thread, random).await?,
            _ => {}
        }
        // Workers continue with it, or this process does.
        if info.status != ThreadStatus::Failed && random.per_mille(700) {
            return Ok(false);
        }
        let (options, acks) = self.listening.to(thread, self.runtime.run_options());
        let result = self.runtime.resume(thread, options).await;
        acks.await.unwrap();
        result.map(|_| true)
    }

    /// Asks, and runs the thread here or leaves that to the workers.
    async fn ask(&self, thread: ThreadId, job: u64, submits: bool) -> Result<(), Error> {
        let request = Request { question: Job::question(job), ..Request::default() };
        if submits {
            return self.runtime.submit(LOCAL_TENANT, thread, None, request).await.map(drop);
        }
        let (options, acks) = self.listening.to(thread, self.runtime.run_options());
        let result = self.runtime.ask(thread, None, request, options).await;
        acks.await.unwrap();
        result.map(drop)
    }

    /// Answers every open question of a thread, now and then as two people who do not agree.
    async fn answer(&self, thread: ThreadId, random: &mut Random) -> Result<(), Error> {
        let view = ThreadView::read(self.runtime.store().as_ref(), thread).await?;
        for InterruptView { id, payload, kind, .. } in view.open {
            assert_eq!(kind, "outcome_unknown");
            let line = payload["request"]["arguments"]["line"].as_str().unwrap();
            let first = random.below(3);
            if random.per_mille(400) {
                let second = first + random.between(1, 2);
                let both =
                    (self.say(thread, &id, line, first), self.say(thread, &id, line, second));
                // One of them is refused.
                let (one, other) = futures::future::join(both.0, both.1).await;
                one.or(other)?;
            } else {
                self.say(thread, &id, line, first).await?
            }
        }
        Ok(())
    }

    /// Gives one answer to a question: it is in one log before, and in another once it is accepted.
    async fn say(&self, thread: ThreadId, id: &str, line: &str, verdict: u64) -> Result<(), Error> {
        let (verdict, answer) = match verdict % 3 {
            0 => ("retry", Answer::OutcomeRetry),
            1 => ("skip", Answer::OutcomeSkip),
            _ => ("done", Answer::OutcomeDone { result: json!("a person says that it was done") }),
        };
        let interrupt = id.to_owned();
        let verdict = verdict.to_owned();
        let line = line.to_owned();
        self.questions.write(&Question { interrupt, line, verdict: verdict.clone() });
        self.runtime.answer(thread, Some(id.parse().unwrap()), answer).await?;
        self.accepted.write(&Accepted { interrupt: id.to_owned(), verdict });
        Ok(())
    }
}

/// Reads which process sent a request, from the header that carries its token.
///
/// # Panics
/// When it is none's: every request here is one of a process.
pub fn sender(authorization: &str) -> u64 {
    let number =
        authorization.strip_prefix("Bearer ").and_then(|it| it.strip_prefix(TOKEN_BEGINNING));
    let number = number.and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("nobody's request: {authorization:?}"))
}

/// Reads which jobs are open.
pub fn read_open(directory: &Path) -> Vec<u64> {
    let text = std::fs::read(directory.join(OPEN)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
