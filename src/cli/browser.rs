//! The browser of the one who sits at this machine.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::environment;

/// Opens a file or an address; says why not where there is no display.
pub(super) fn open(what: impl AsRef<OsStr>) -> Result<(), String> {
    let (program, displayed) = if cfg!(target_os = "macos") {
        ("open", true)
    } else {
        let set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
        ("xdg-open", set("DISPLAY") || set("WAYLAND_DISPLAY"))
    };
    if !displayed {
        return Err("there is no display".to_owned());
    }
    let mut command = Command::new(program);
    command.arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It continues after this process, or has handed over by then.
    command.spawn().map(drop).map_err(|error| format!("{program}: {error}"))
}
