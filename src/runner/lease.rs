//! Holds a thread while a run is under way: who holds it, and keeping hold of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::checkpoint::{Error, Store, ThreadInfo};
use crate::clock;
use crate::ids::ThreadId;

/// How long a lease lasts without renewal; a dead process on another host is waited for this long.
pub(super) const LEASE: Duration = Duration::from_secs(15);

/// Returns the name under which this process holds leases: host, boot, process namespace, pid, start time.
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
    let mut parts = owner.rsplitn(3, '/');
    let (Some(start), Some(pid), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Ok(pid) = pid.parse::<u32>() else { return false };
    let here = rest.ends_with(&machine()) && !machine().is_empty();
    here && started(pid).is_none_or(|now| now != start)
}

/// Identifies the boot and the pid namespace, so that pids of other machines and containers never match.
fn machine() -> String {
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

/// Takes a thread, at once if its last holder is known to be dead.
pub(super) async fn claim(
    store: &dyn Store,
    thread: ThreadId,
    owner: &str,
) -> Result<ThreadInfo, Error> {
    match store.claim(thread, owner, LEASE, false).await {
        Err(Error::Busy { owner: holder, .. }) if holder_is_dead(&holder) => {
            tracing::info!(%thread, %holder, "taking the thread over from a dead process");
            store.claim(thread, owner, LEASE, true).await
        }
        other => other,
    }
}

/// Renews the lease until dropped; cancels the run when the thread was lost to another process.
pub(super) fn keep(
    store: Arc<dyn Store>,
    thread: ThreadId,
    fence: u64,
    cancel: CancellationToken,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            clock::sleep(LEASE / 3).await;
            match store.renew(thread, fence, LEASE).await {
                Ok(()) => {}
                Err(error @ Error::Fenced { .. }) => {
                    tracing::error!(%thread, %error, "stopping the run");
                    return cancel.cancel();
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
    fn a_living_holder_is_never_taken_for_dead_and_a_foreign_one_neither() {
        let me = owner_name();
        assert!(!holder_is_dead(&me), "{me}");
        assert!(!holder_is_dead("elsewhere/some-boot+pid:[1]/1/1"));
        assert!(!holder_is_dead(""));
        let (rest, _) = me.rsplit_once('/').unwrap();
        assert!(holder_is_dead(&format!("{rest}/1")), "same pid, other start time");
    }
}
