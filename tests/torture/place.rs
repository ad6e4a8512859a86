//! One place for a process: starts one, does to it what its plan says, and starts the next.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use perihelion::clock;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use super::hand;
use super::plan::{Fate, Plan};
use super::random::Random;
use super::storm::Storm;

/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// How much longer a process lives in a build that is not optimised, and so does its work more slowly.
const SLOWNESS: u64 = if cfg!(debug_assertions) { 4 } else { 1 };

/// Stopped processes at a time; each holds its memory and its connections.
const STOPPED: usize = 16;

/// What became of a process that was watched.
enum Watched {
    /// It is gone; `by_us` when it was killed from outside.
    Ended { by_us: bool },
    /// It is stopped; `by_us` when from outside.
    Stopped { by_us: bool },
}

/// Keeps one place filled until calm has come and no job is open.
pub async fn keep(storm: Arc<Storm>, place: u64) {
    loop {
        if storm.is_calm() && hand::read_open(&storm.directory).is_empty() {
            return;
        }
        let number = storm.counts.processes.fetch_add(1, Relaxed);
        let is_calm = storm.is_calm();
        let plan = Plan::draw(storm.seed, number, storm.options.zombies_per_mille());
        storm.counts.skewed.fetch_add(u64::from(!is_calm && plan.skew != 0), Relaxed);
        let mut child = start(&storm, number, place, is_calm);
        match watch(&storm, &mut child, plan, is_calm).await {
            Watched::Ended { by_us } => reap(&storm, child, by_us).await,
            Watched::Stopped { by_us } => {
                let random = Random::new(storm.seed, &[7, number]);
                let zombie = revive(Arc::clone(&storm), child, random, by_us);
                if storm.stopped.len() < STOPPED {
                    drop(storm.stopped.spawn(zombie))
                } else {
                    zombie.await
                }
            }
        }
    }
}

fn start(storm: &Storm, number: u64, place: u64, is_calm: bool) -> Child {
    let log = storm.directory.join("hands.err");
    let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    Command::new(std::env::current_exe().unwrap())
        .arg("hand")
        .arg(&storm.directory)
        .args([number.to_string(), place.to_string()])
        .arg(if is_calm { "calm" } else { "mined" })
        .env_clear()
        .envs(std::env::var_os("RUST_BACKTRACE").map(|value| ("RUST_BACKTRACE", value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn watch(storm: &Storm, child: &mut Child, plan: Plan, is_calm: bool) -> Watched {
    let mut started = plan.is_early.then(clock::monotonic);
    let end_after = Duration::from_millis(plan.end_after * SLOWNESS);
    let mut stdout = child.stdout.take().unwrap();
    let mut text = [0; 8];
    loop {
        tokio::select! {
            _ = child.wait() => return Watched::Ended { by_us: false },
            _ = stdout.read(&mut text), if started.is_none() => started = Some(clock::monotonic()),
            () = clock::sleep(LOOK) => {}
        }
        if is_stopped(child) {
            return Watched::Stopped { by_us: false };
        }
        // A process that was started before the calm lives by its plan, and so is gone soon.
        if is_calm || started.is_none_or(|started| started.elapsed() < end_after) {
            continue;
        }
        match plan.end {
            Fate::Stop if !storm.is_calm() => {
                signal(child, Signal::SIGSTOP);
                return Watched::Stopped { by_us: true };
            }
            _ => {
                let by_us = child.start_kill().is_ok();
                return Watched::Ended { by_us };
            }
        }
    }
}

/// Lets a stopped process lie for longer than its lease, revives it, and kills it a little later.
async fn revive(storm: Arc<Storm>, mut child: Child, mut random: Random, by_us: bool) {
    let lease = storm.options.lease_ms;
    clock::sleep(Duration::from_millis(random.between(lease * 11 / 10, lease * 2))).await;
    signal(&child, Signal::SIGCONT);
    storm.counts.zombies.fetch_add(1, Relaxed);
    storm.counts.zombies_at_points.fetch_add(u64::from(!by_us), Relaxed);
    let rest = Duration::from_millis(random.between(60, 400));
    let by_us = tokio::time::timeout(rest, child.wait()).await.is_err();
    if by_us {
        let _ = child.start_kill();
    }
    reap(&storm, child, by_us).await;
}

async fn reap(storm: &Storm, mut child: Child, by_us: bool) {
    use std::os::unix::process::ExitStatusExt as _;
    let status = child.wait().await.unwrap();
    if status.signal() == Some(Signal::SIGKILL as i32) {
        storm.counts.kills.fetch_add(1, Relaxed);
        storm.counts.kills_at_points.fetch_add(u64::from(!by_us), Relaxed);
    } else if !status.success() {
        storm.counts.gave_up.fetch_add(1, Relaxed);
        clock::sleep(Duration::from_millis(150)).await;
    }
}

fn signal(child: &Child, signal: Signal) {
    // Once it was waited for it has no number any more, and nothing is to be done.
    if let Some(pid) = child.id() {
        let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal);
    }
}

fn is_stopped(child: &Child) -> bool {
    let Some(pid) = child.id() else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}
