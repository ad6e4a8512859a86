//! Finds processes that left their group: every child carries a mark in its environment, and passes it on.
//!
//! Browsers started by a server, for one, lead groups of their own and would survive its end. What starts others with an empty
//! environment in a session of its own hides them from this; a sandbox does not let go of them.

/// Name of the variable; its value lists the marks of all levels, outermost first.
pub(super) const VARIABLE: &str = "PERIHELION_MCP_PROCESS";

/// Rounds of looking, for processes that start others while they are being ended.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 5;

/// The mark of one child and its descendants.
pub(super) struct Mark(String);

impl Mark {
    pub fn new() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    /// Returns the value of [`VARIABLE`] for the child; a mark that this process carries is passed on.
    pub fn value(&self) -> String {
        std::env::var(VARIABLE)
            .map_or_else(|_| self.0.clone(), |outer| format!("{outer}/{}", self.0))
    }

    /// Kills every process that carries the mark. Where there is no `/proc`, none can be found.
    pub fn kill_carriers(&self) {
        #[cfg(target_os = "linux")]
        for _ in 0..ROUNDS {
            let carriers = self.carriers();
            if carriers.is_empty() {
                break;
            }
            for carrier in carriers {
                // Gone meanwhile is as good.
                let _ = nix::sys::signal::kill(carrier, nix::sys::signal::Signal::SIGKILL);
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn carriers(&self) -> Vec<nix::unistd::Pid> {
        let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
        let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter(|id: &i32| {
            // Other users' processes cannot be read, and are none of ours.
            let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| self.is_in(variable))
        })
        .map(nix::unistd::Pid::from_raw)
        .collect()
    }

    #[cfg(target_os = "linux")]
    fn is_in(&self, variable: &[u8]) -> bool {
        let value = variable.strip_prefix(VARIABLE.as_bytes());
        let value = value.and_then(|value| value.strip_prefix(b"="));
        value.is_some_and(|value| {
            value.split(|byte| *byte == b'/').any(|mark| mark == self.0.as_bytes())
        })
    }
}
