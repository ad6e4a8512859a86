//! The system resources of this process: its privacy, its file limits, and the user's browser.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::{environment, output};

/// The descriptors that a service needs in addition to its connections: databases, children, calls to models.
const RESERVE: u64 = 256;

/// Has the system refuse them `/proc/PID/environ`, `mem` and tracing of this process, and write no core dump of it.
///
/// Otherwise a bundled MCP server could read from its parent the variables that were kept out of its own environment.
/// Root can still read it. Child processes are unaffected, because a new program starts with defaults.
pub(super) fn keep_private() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        output::warning(&format!(
            "other programs of this user can read the secrets of this process: {error}"
        ));
    }
}

/// Raises the soft limit to the hard one, and returns the possible number of connections, at most `wanted`.
///
/// If the limits are unknown, it returns the wanted number.
pub(super) fn connections(wanted: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return wanted };
    let needed = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(RESERVE);
    let raised = needed.min(hard).max(soft);
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
        Ok(()) => raised,
        Err(_) => soft,
    };
    room(limit, wanted)
}

/// Returns how many of these descriptors remain for connections.
fn room(limit: u64, wanted: usize) -> usize {
    let left = limit.saturating_sub(RESERVE).max(limit / 2).max(1);
    usize::try_from(left).unwrap_or(usize::MAX).min(wanted)
}

/// Returns the program that opens files and addresses; `None` without a display.
pub(super) fn opener() -> Option<&'static str> {
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    let set = |name: &&str| environment(name).is_some_and(|value| !value.is_empty());
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(set).then_some("xdg-open")
}

/// Opens a file or an address; without a display it returns the reason.
pub(super) fn open_in_browser(what: impl AsRef<OsStr>) -> Result<(), NotOpened> {
    let program = opener().ok_or(NotOpened::NoDisplay)?;
    let mut command = Command::new(program);
    command.arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It continues after this process, or has handed over by then.
    command.spawn().map(drop).map_err(|source| NotOpened::Program { program, source })
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NotOpened {
    #[error("there is no display")]
    NoDisplay,
    #[error("{program}: {source}")]
    Program { program: &'static str, source: std::io::Error },
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn other_programs_of_the_user_cannot_inspect_this_one() {
        super::keep_private();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
        // What the program itself needs of its own entries stays open.
        assert!(std::fs::read_dir("/proc/self/fd").is_ok());
        assert!(std::fs::read_link("/proc/self/ns/pid").is_ok());
    }
}

#[cfg(test)]
mod descriptors_tests {
    use super::*;

    #[test]
    fn connections_leave_spare_file_handles_for_their_work() {
        for (limit, wanted, room_for) in
            [(20_000, 16_384, 16_384), (1_024, 16_384, 768), (64, 16_384, 32), (1_024, 8, 8)]
        {
            assert_eq!(room(limit, wanted), room_for, "{limit}");
        }
    }
}
