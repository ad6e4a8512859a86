//! Finds processes that were left behind: this process adopts every orphan, so a child that it did not start is one.

use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use perihelion::clock;

/// How long the kernel may take to end what was killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets everything that loses its parent become a child of this process, however it left its group.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    // What could not be seen would pass as clean: one that leaves its group and its parent is looked for first.
    let mut parent = Command::new("setsid").args(["sh", "-c", "sleep 600 &"]).spawn().unwrap();
    parent.wait().unwrap();
    let orphans = children();
    assert_eq!(
        orphans.len(),
        1,
        "an orphan is not seen here (Linux alone shows them): {orphans:?}"
    );
    kill(orphans[0], Signal::SIGKILL).unwrap();
    nobody().unwrap();
}

fn children() -> Vec<Pid> {
    let own = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

/// Checks that no process is left.
///
/// # Errors
/// The command lines of those that are.
pub fn nobody() -> Result<(), String> {
    let until = clock::monotonic() + PATIENCE;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return Ok(()),
            Ok(WaitStatus::StillAlive) if clock::monotonic() > until => break,
            Ok(WaitStatus::StillAlive) => std::thread::yield_now(),
            // One that had ended; the next may live.
            _ => {}
        }
    }
    let line = |pid: &Pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
    };
    Err(format!("left behind: {:?}", children().iter().map(line).collect::<Vec<_>>()))
}
