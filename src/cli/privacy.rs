//! Keeps the memory and the environment of this process from programs of the same user.

/// Has the system refuse them `/proc/PID/environ`, `mem` and tracing of this process, and write no core dump of it.
///
/// An MCP server started here would else read from its parent all that was kept out of its own environment. Root may look all
/// the same. What this process starts is not affected: a new program begins again.
pub(super) fn keep() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        super::output::warning(&format!(
            "other programs of this user can read the secrets of this process: {error}"
        ));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn other_programs_of_the_user_cannot_look_into_this_one() {
        super::keep();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
        // What the program itself needs of its own entries stays open.
        assert!(std::fs::read_dir("/proc/self/fd").is_ok());
        assert!(std::fs::read_link("/proc/self/ns/pid").is_ok());
    }
}
