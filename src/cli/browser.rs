//! The browser of the one who sits at this machine.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::environment;

/// Returns the program that opens files and addresses; none without a display.
pub(super) fn opener() -> Option<&'static str> {
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    let set = |name: &&str| environment(name).is_some_and(|value| !value.is_empty());
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(set).then_some("xdg-open")
}

/// Opens a file or an address; says why not where there is no display.
pub(super) fn open(what: impl AsRef<OsStr>) -> Result<(), String> {
    let program = opener().ok_or("there is no display")?;
    let mut command = Command::new(program);
    command.arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It continues after this process, or has handed over by then.
    command.spawn().map(drop).map_err(|error| format!("{program}: {error}"))
}
