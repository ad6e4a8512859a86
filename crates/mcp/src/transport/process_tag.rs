//! Finds processes that left their group: every child carries a mark in its environment, and passes it on.
//!
//! Browsers started by a server, for example, lead their own groups and would survive its end. A process that starts
//! children with an empty environment in a separate session hides them from this; a sandbox contains them.

/// Name of the variable; its value lists the marks of all levels, outermost first.
pub(super) const VARIABLE: &str = "PERIHELION_MCP_PROCESS";

/// Rounds of searching, for processes that start other ones while they are being ended.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 5;

/// The mark of one child and its descendants.
pub(super) struct ProcessTag(String);

impl ProcessTag {
    pub fn new() -> Self {
        Self(format!("{}.{}", uuid::Uuid::new_v4(), owner(std::process::id()).unwrap_or_default()))
    }

    /// Returns the value of [`VARIABLE`] for the child; a mark that this process carries is passed on.
    pub fn value(&self) -> String {
        std::env::var(VARIABLE)
            .map_or_else(|_| self.0.clone(), |outer| format!("{outer}/{}", self.0))
    }

    /// Kills every process that carries the mark. Without `/proc`, none can be found.
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
        marked()
            .into_iter()
            .filter(|(_, marks)| marks.contains(&self.0))
            .map(|(id, _)| id)
            .collect()
    }
}

/// Kills remaining servers of processes that died before they could end them.
///
/// A process of another namespace is left alone, because the status of its owner is unknown here.
#[cfg(target_os = "linux")]
pub(super) fn kill_orphans() {
    for (id, marks) in marked() {
        let is_orphaned = |mark: &String| {
            let Some((_, owner)) = mark.split_once('.') else { return false };
            let Some((process, _)) = owner.split_once('.') else { return false };
            let is_of_here = owner.ends_with(&namespace());
            is_of_here && process.parse().ok().and_then(self::owner).as_deref() != Some(owner)
        };
        if marks.iter().any(is_orphaned) {
            tracing::info!(process = %id, "ending an MCP server process whose owner died");
            // Gone meanwhile is as good.
            let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// Without `/proc` none can be found.
#[cfg(not(target_os = "linux"))]
pub(super) fn kill_orphans() {}

/// Identifies a process while the machine runs: its number, its start time, and its PID namespace.
fn owner(process: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name stands in parentheses and may hold anything.
    let began = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    Some(format!("{process}.{began}.{}", namespace()))
}

fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// Lists the processes that carry marks, with those marks.
#[cfg(target_os = "linux")]
fn marked() -> Vec<(nix::unistd::Pid, Vec<String>)> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: i32| {
        // Other users' processes cannot be read, and are none of ours.
        let environment = std::fs::read(format!("/proc/{id}/environ")).ok()?;
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
        let marks = String::from_utf8_lossy(value).split('/').map(str::to_owned).collect();
        Some((nix::unistd::Pid::from_raw(id), marks))
    })
    .collect()
}
