//! The storm: keeps processes running, and ends, stops and starves them, until enough has happened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use perihelion::checkpoint::{self, Store, ThreadFilter, ThreadStatus};
use perihelion::clock;
use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{ScriptedModel, ScriptedServer};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use super::cluster::Cluster;
use super::collector::Collector;
use super::disk::Disk;
use super::hand::{OPEN, SERVERS, SETUP, Setup, TOKEN};
use super::jobs::{self, BOOK, Job, LOOK, RING};
use super::logs::{Log, MODELS};
use super::options::{Kind, Options};
use super::points;
use super::proxy::{self, Piece, Way};
use super::random::Random;
use super::receiver;

/// Pieces that pass on a connection until it is ready for statements.
const GREETING: u64 = 12;

/// What has happened so far.
#[derive(Debug, Default)]
pub struct Counts {
    pub processes: AtomicU64,
    pub kills: AtomicU64,
    /// Of these, at a failpoint.
    pub kills_at_points: AtomicU64,
    pub zombies: AtomicU64,
    pub zombies_at_points: AtomicU64,
    pub skewed: AtomicU64,
    pub crashes: AtomicU64,
    pub fills: AtomicU64,
    pub cuts: AtomicU64,
    /// Processes that gave up by themselves, as when the database is away.
    pub gave_up: AtomicU64,
    pub done: AtomicU64,
}

/// Everything the tasks of a storm share.
pub struct Storm {
    pub options: Options,
    pub seed: u64,
    pub directory: PathBuf,
    pub counts: Counts,
    pub store: Arc<dyn Store>,
    /// The database's address, without the proxy that cuts connections.
    pub direct: String,
    pub collector: Collector,
    pub started: Instant,
    /// From now on nothing is done to processes, so that every thread can end.
    pub is_calm: AtomicBool,
    /// Processes that were stopped, until they are gone.
    pub stopped: TaskTracker,
    cluster: Mutex<Option<Cluster>>,
    disk: Option<Disk>,
    _model: ScriptedServer,
}

impl Storm {
    /// Starts everything that the processes need, in an empty directory.
    pub async fn prepare(options: Options, seed: u64, directory: PathBuf) -> Arc<Self> {
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let disk = match options.fills {
            0 => None,
            _ => {
                let disk = Disk::mount(&directory.join("disk"), options.disk_mib);
                Some(disk.expect("--fills needs the right to mount a file system"))
            }
        };
        let place = disk.as_ref().map_or(directory.clone(), |disk| disk.path.clone());
        let counts = Counts::default();
        let (cluster, direct) = match options.database {
            Kind::Sqlite => (None, format!("sqlite:{}", place.join("threads.db").display())),
            Kind::Postgres => {
                // A server that is not root's must reach its files.
                let home = tempfile_home(&place);
                let cluster = Cluster::start(&home, &options.postgres_settings).await;
                let url = cluster.url.clone();
                (Some(cluster), url)
            }
        };
        let store = checkpoint::open(&direct).await.unwrap();
        let model =
            ScriptedModel::start(jobs::script(seed, Log::open(&directory, MODELS))).await.unwrap();
        let storm = Arc::new(Self {
            seed,
            directory,
            counts,
            store,
            direct: direct.clone(),
            collector: Collector::start(seed).await,
            started: clock::monotonic(),
            is_calm: AtomicBool::new(false),
            stopped: TaskTracker::new(),
            cluster: Mutex::new(cluster),
            disk,
            _model: model,
            options,
        });
        let database = match storm.options.database {
            Kind::Sqlite => direct,
            Kind::Postgres => storm.proxied(&direct).await,
        };
        storm.write_files(database).await;
        storm
    }

    /// Returns the database's URL behind a proxy that cuts connections.
    async fn proxied(self: &Arc<Self>, url: &str) -> String {
        let random = std::sync::Mutex::new(Random::new(self.seed, &[6]));
        let weak = Arc::downgrade(self);
        proxy::before(url, move |piece| {
            let Some(storm) = weak.upgrade().filter(|storm| !storm.is_calm()) else { return false };
            let one_of = storm.options.cut_one_of;
            let one_of = match piece {
                // What leaves a writer in doubt.
                Piece { way: Way::Reply, is_commit: true, .. } => one_of.div_ceil(10),
                // A process that never gets to work proves little.
                Piece { passed: ..GREETING, .. } => 100 * one_of,
                Piece { way: Way::Reply, .. } => one_of,
                Piece { way: Way::Statement, .. } => 5 * one_of,
            };
            let is_cut = random.lock().unwrap().below(one_of) == 0;
            storm.counts.cuts.fetch_add(u64::from(is_cut), Relaxed);
            is_cut
        })
        .await
    }

    /// Reads what the processes are told.
    pub fn setup(&self) -> Setup {
        let text = std::fs::read(self.directory.join(SETUP)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    async fn write_files(&self, database: String) {
        let address = receiver::start(&self.directory, self.seed).await;
        let table = |server: &str| {
            format!(
                "[mcp_servers.{server}]\nurl = \"{address}/{server}/mcp\"\nrequired = true\n\
                 description = \"Does what it is told.\"\nopen_world = false\nbearer_token_env_var = \"{TOKEN}\"\nrepeatable = [\"{BOOK}\", \"{RING}\"]\n\
                 tools.{LOOK}.effect = \"read_only\"\nmax_result_bytes = 1000000\n\n"
            )
        };
        let servers: String = jobs::SERVERS.iter().map(|server| table(server)).collect();
        std::fs::write(self.directory.join(SERVERS), servers).unwrap();
        let setup = Setup {
            seed: self.seed,
            database,
            model: self._model.url().to_owned(),
            collector: self.collector.url.clone(),
            lease_sec: self.options.lease_ms as f64 / 1000.0,
            hands: self.options.hands(),
            zombies: self.options.zombies_per_mille(),
        };
        std::fs::write(self.directory.join(SETUP), serde_json::to_vec(&setup).unwrap()).unwrap();
    }

    pub fn is_calm(&self) -> bool {
        self.is_calm.load(Relaxed)
    }

    /// Opens jobs until enough has happened, then waits for those that are open; returns how many there were.
    pub async fn weather(self: &Arc<Self>) -> Result<u64, String> {
        let window = 4 * self.options.hands();
        let mut open: Vec<u64> = Vec::new();
        let mut next = 0;
        let mut last_report = clock::monotonic();
        let mut calm_since = None;
        let disturbances = tokio::spawn(Arc::clone(self).disturb_the_database());
        loop {
            let mut still = Vec::new();
            for job in open {
                if self.is_done(job).await {
                    self.counts.done.fetch_add(1, Relaxed);
                } else {
                    still.push(job);
                }
            }
            open = still;
            while !self.is_calm() && (open.len() as u64) < window {
                open.push(next);
                next += 1;
            }
            if self.is_calm() && open.is_empty() {
                open = self.taken_again(next).await;
            }
            // Who reads that no job is open ends, and nobody comes after him.
            self.write_open(&open);
            if last_report.elapsed() > Duration::from_secs(5) {
                last_report = clock::monotonic();
                self.tell(open.len());
            }
            if self.is_calm() && open.is_empty() {
                break;
            }
            if calm_since.is_none() && self.is_enough() {
                self.is_calm.store(true, Relaxed);
                calm_since = Some(clock::monotonic());
            }
            if calm_since.is_some_and(|since: Instant| since.elapsed() > Duration::from_secs(90)) {
                return Err(format!("these jobs did not end within 90 s of calm: {open:?}"));
            }
            clock::sleep(Duration::from_millis(60)).await;
        }
        disturbances.await.unwrap();
        self.tell(0);
        Ok(next)
    }

    fn write_open(&self, open: &[u64]) {
        let new = self.directory.join("open.new");
        std::fs::write(&new, serde_json::to_vec(open).unwrap()).unwrap();
        std::fs::rename(new, self.directory.join(OPEN)).unwrap();
    }

    async fn is_done(&self, job: u64) -> bool {
        let info = self.store.info(Job::thread(self.seed, job)).await;
        info.is_ok_and(|info| info.head > 0 && info.status == ThreadStatus::Idle)
    }

    /// Returns the jobs that were done, and then taken again by a process that had looked before and died since.
    async fn taken_again(&self, jobs: u64) -> Vec<u64> {
        let known: HashMap<ThreadId, u64> =
            (0..jobs).map(|job| (Job::thread(self.seed, job), job)).collect();
        let mut open = Vec::new();
        let unfinished = [
            ThreadStatus::Busy,
            ThreadStatus::Queued,
            ThreadStatus::Failed,
            ThreadStatus::Interrupted,
        ];
        for status in unfinished {
            let filter = ThreadFilter { status: Some(status), ..ThreadFilter::default() };
            let threads = self.store.list(&filter).await.unwrap();
            // At rest is at rest, also after a run that failed.
            let taken = threads.iter().filter(|info| info.status == status);
            open.extend(taken.filter_map(|info| known.get(&info.id)));
        }
        open
    }

    /// Returns whether all that was asked for has happened, or the time is up.
    fn is_enough(&self) -> bool {
        let counts = &self.counts;
        let options = &self.options;
        if self.started.elapsed() > Duration::from_secs(options.seconds) {
            return true;
        }
        let has = |count: &AtomicU64, wanted: u64| count.load(Relaxed) >= wanted;
        has(&counts.kills, options.kills)
            && has(&counts.zombies, options.zombies)
            && (self.options.database == Kind::Sqlite || has(&counts.crashes, options.crashes))
            && has(&counts.fills, options.fills)
            && points::counts(&self.directory, self.options.database == Kind::Postgres)
                .iter()
                .all(|(_, count)| *count >= options.least)
    }

    /// Crashes the server and fills its disk, spread over the storm.
    async fn disturb_the_database(self: Arc<Self>) {
        let wanted = |each: u64, so_far: u64| {
            each > so_far
                && self.counts.kills.load(Relaxed) * (each + 1) >= self.options.kills * (so_far + 1)
        };
        let is_server = self.options.database == Kind::Postgres;
        while !self.is_calm() {
            if is_server && wanted(self.options.crashes, self.counts.crashes.load(Relaxed)) {
                self.crash().await;
                self.counts.crashes.fetch_add(1, Relaxed);
            }
            if let Some(disk) = &self.disk
                && wanted(self.options.fills, self.counts.fills.load(Relaxed))
            {
                disk.fill();
                clock::sleep(Duration::from_millis(400)).await;
                disk.free();
                self.counts.fills.fetch_add(1, Relaxed);
                // A server whose log could not be written stops itself; it may not have come back.
                clock::sleep(Duration::from_millis(200)).await;
                if is_server && self.store.info(Job::thread(self.seed, 0)).await.is_err() {
                    self.crash().await;
                }
            }
            clock::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn crash(&self) {
        if let Some(cluster) = self.cluster.lock().await.as_mut() {
            cluster.crash().await;
        }
    }

    fn tell(&self, open: usize) {
        let counts = &self.counts;
        let get = |count: &AtomicU64| count.load(Relaxed);
        let seconds = self.started.elapsed().as_secs_f64();
        let share = get(&counts.kills) as f64 / self.options.kills.max(1) as f64;
        let left = if share > 0.0 { seconds * (1.0 / share - 1.0).max(0.0) } else { f64::NAN };
        eprintln!(
            "{seconds:6.0} s  {} kills ({} at points)  {} zombies  {} crashes  {} fills  {} cuts  \
             {} processes  {} jobs done, {open} open  about {left:.0} s left",
            get(&counts.kills),
            get(&counts.kills_at_points),
            get(&counts.zombies),
            get(&counts.crashes),
            get(&counts.fills),
            get(&counts.cuts),
            get(&counts.processes),
            get(&counts.done),
        );
    }

    /// Ends the server, once everything was read.
    pub async fn end(&self) {
        self.store.close().await;
        if let Some(cluster) = self.cluster.lock().await.take() {
            cluster.stop().await;
        }
    }
}

/// Returns a directory for the server's files; they are many, and gone with the server.
fn tempfile_home(place: &Path) -> PathBuf {
    let home = place.join("server");
    std::fs::create_dir_all(&home).unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&home, everybody).unwrap();
    home
}
