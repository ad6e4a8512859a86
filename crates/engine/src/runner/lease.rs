//! The lease of a thread during a run: its holder, and its renewal.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Span;

use crate::checkpoint::{Error, Fence, Leases};
use crate::clock;
use crate::failpoint::{Point, wrap};

/// How long a lease lasts without renewal, by default.
pub const LEASE: Duration = Duration::from_secs(15);

/// The active leases of this process, so that the lease of a dropped run is known to be dead.
static GUARDS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// One hold on a thread; it dies with the future that runs the thread, however that ends.
#[derive(Debug)]
pub(super) struct LeaseGuard {
    number: u64,
    owner: String,
}

impl LeaseGuard {
    pub(super) fn new(process: &str) -> Self {
        let mut guards = GUARDS.lock();
        // Never a number twice: a dropped hold must not come alive again under a new run.
        static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        guards.insert(number);
        Self { number, owner: format!("{process}/{number}") }
    }

    pub(super) fn owner(&self) -> &str {
        &self.owner
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        GUARDS.lock().remove(&self.number);
    }
}

/// Returns the name under which this process holds leases: host, boot, process namespace, pid, start time.
///
/// Each hold adds its own number.
pub fn owner_name() -> String {
    let host = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default();
    let pid = std::process::id();
    format!("{host}/{}/{pid}/{}", machine(), started(pid).unwrap_or_default())
}

/// Returns whether the named holder ran on this very machine and process namespace and is gone.
pub fn holder_is_dead(owner: &str) -> bool {
    let parts: Vec<&str> = owner.split('/').collect();
    let (place, pid, start, claim) = match parts[..] {
        [_, place, pid, start] => (place, pid, start, None),
        [_, place, pid, start, claim] => (place, pid, start, claim.parse::<u64>().ok()),
        _ => return false,
    };
    let Ok(pid) = pid.parse::<u32>() else { return false };
    if place.is_empty() || place != machine() {
        return false;
    }
    if started(pid).is_none_or(|now| now != start) {
        return true;
    }
    let is_mine = pid == std::process::id();
    is_mine && claim.is_some_and(|claim| !GUARDS.lock().contains(&claim))
}

/// Identifies the boot and the pid namespace, so that pids of other machines and containers never match.
///
/// Names of holders contain it between slashes; empty if the system does not provide it.
pub fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_else(|_| PathBuf::new());
    if boot.is_empty() { String::new() } else { format!("{}+{}", boot.trim(), namespace.display()) }
}

/// Returns a process's start time in clock ticks since boot; a zombie counts as gone.
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

/// Renews the lease until dropped; stops the run when the thread was lost to another process, or deleted.
pub(super) fn keep(
    store: Arc<dyn Leases>,
    fence: Fence,
    ttl: Duration,
    stop: CancellationToken,
    span: Arc<OnceLock<Span>>,
) -> AbortOnDropHandle<()> {
    let thread = fence.thread;
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            clock::sleep(ttl / 3).await;
            let renewed = wrap(Point::Renew, store.renew(fence, ttl)).await;
            let _within = span.get().map(Span::enter);
            match renewed {
                Ok(()) => {}
                Err(error @ (Error::Fenced { .. } | Error::UnknownThread(_))) => {
                    tracing::error!(%thread, %error, "stopping the run");
                    return stop.cancel();
                }
                Err(error) => {
                    tracing::warn!(%thread, %error, "the lease could not be renewed; trying again")
                }
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_holder_is_never_considered_dead_and_neither_is_a_foreign_one() {
        let me = owner_name();
        assert!(!holder_is_dead(&me), "{me}");
        assert!(!holder_is_dead("elsewhere/some-boot+pid:[1]/1/1"));
        assert!(!holder_is_dead(""));
        let (rest, _) = me.rsplit_once('/').unwrap();
        assert!(holder_is_dead(&format!("{rest}/1")), "same pid, other start time");
    }

    #[test]
    fn a_hold_of_this_very_process_is_dead_once_its_run_was_dropped() {
        let guard = LeaseGuard::new(&owner_name());
        let owner = guard.owner().to_owned();
        assert!(!holder_is_dead(&owner), "{owner}");
        drop(guard);
        assert!(holder_is_dead(&owner), "{owner}");
    }
}
