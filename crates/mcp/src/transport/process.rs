//! Owns a server's child process: its group, its strays, its stderr, its end.
//!
//! Finds processes that left their group by a mark in the environment, which each child passes on. A process that starts
//! children with an empty environment in a separate session hides them; a sandbox contains them.
//!
//! Invariant: anyone who drops a [`Process`] kills all that descends from it, at once and without a runtime.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Once};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::{memory::Bound, program::Program, stderr::Tail};

/// How long a killed process may take to be reaped; it cannot refuse, only be stuck in the kernel.
const REAP: Duration = Duration::from_secs(1);

/// Remains of earlier processes are searched for once.
static ORPHANS: Once = Once::new();

/// A running child, leader of its own process group.
pub(super) struct Process {
    group: Mutex<Group>,
    tail: Arc<Tail>,
    drain: AbortOnDropHandle<()>,
    /// Dropped after the group, whose processes are in it.
    bound: Option<Bound>,
}

impl Process {
    /// Starts a program in a new process group, with only the given environment and a mark.
    ///
    /// It has at most `memory_mb` megabytes of memory; `None` means the machine's.
    pub fn spawn(
        program: Program<'_>,
        memory_mb: Option<u64>,
        tail: Tail,
    ) -> std::io::Result<(Self, ChildStdin, ChildStdout)> {
        ORPHANS.call_once(kill_orphans);
        let mark = ProcessTag::new();
        let bound = memory_mb.map(Bound::new);
        let program = match &bound {
            Some(bound) => bound.launch(program)?,
            None => program,
        };
        let mut command = Command::new(&program.program);
        command
            .args(&program.args)
            .env_clear()
            .envs(program.env)
            .env(VARIABLE, mark.value())
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = program.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let mut group = Group::of(child, mark)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(std::io::Error::other("the child has no pipes"));
        };
        group.rest = Some(stdout.as_fd().try_clone_to_owned()?);
        let tail = Arc::new(tail);
        let drain = AbortOnDropHandle::new(tokio::spawn(tail.clone().drain(stderr)));
        Ok((Self { group: Mutex::new(group), tail, drain, bound }, stdin, stdout))
    }

    /// Returns the last lines that the child wrote to stderr, without secrets; `None` if it was silent.
    pub fn last_words(&self) -> Option<String> {
        let words = self.tail.text();
        (!words.is_empty()).then(|| format!("its last words on stderr: {words}"))
    }

    /// Waits a moment for a child whose pipes closed to end, and describes how it did.
    pub async fn describe_end(&self, patience: Duration) -> Option<String> {
        let mut group = self.group.lock().await;
        let ended = timeout(patience, group.child.wait()).await.ok()?.ok();
        group.kill();
        // The last words may still be in the pipe when the exit is seen.
        let _ = timeout(patience, self.tail.ended.cancelled()).await;
        let ended = ended.map(describe)?;
        let memory = self.bound.as_ref().and_then(|bound| bound.explain(&self.tail.text()));
        Some(match memory {
            Some(memory) => format!("{memory}; {ended}"),
            None => ended,
        })
    }

    /// Ends the child and its whole group: by the closed stdin, then SIGTERM, then SIGKILL; reaps it.
    ///
    /// Its stdin must have been closed before. Takes at most `patience` twice and a second. Its output during this is
    /// read and dropped, because many servers die of a broken pipe while they clean up.
    pub async fn end(&self, patience: Duration) {
        let mut group = self.group.lock().await;
        let rest = group.rest.take();
        tokio::select! {
            () = group.end(patience) => {}
            never = read_out(rest) => match never {},
        }
        self.drain.abort();
    }
}

struct Group {
    child: Child,
    /// `None` after the group was killed: its number may then belong to other processes.
    id: Option<Pid>,
    /// Finds the members that moved to a group of their own.
    mark: ProcessTag,
    /// A second reading end of its stdout, open while the child is.
    rest: Option<OwnedFd>,
}

impl Group {
    fn of(child: Child, mark: ProcessTag) -> std::io::Result<Self> {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.ok_or_else(|| std::io::Error::other("the child ended while starting"))?;
        Ok(Self { child, id: Some(Pid::from_raw(id)), mark, rest: None })
    }

    /// Signals every member; an empty group returns ESRCH, which is the expected end.
    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            let _ = killpg(id, signal);
        }
    }

    async fn end(&mut self, patience: Duration) {
        if timeout(patience, self.child.wait()).await.is_err() {
            self.signal(Signal::SIGTERM);
            let _ = timeout(patience, self.child.wait()).await;
        }
        self.kill();
        let _ = timeout(REAP, self.child.wait()).await;
    }

    /// Kills every member and every stray. Done after the child's own end as well, which they may outlive.
    fn kill(&mut self) {
        if self.id.is_some() {
            self.signal(Signal::SIGKILL);
            self.mark.kill_carriers();
            self.id = None;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads a pipe until all writers have closed it, and then waits forever.
async fn read_out(pipe: Option<OwnedFd>) -> Infallible {
    if let Some(Ok(mut pipe)) = pipe.map(pipe::Receiver::from_owned_fd) {
        // No caller waits for this output, so errors do not matter.
        let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    }
    std::future::pending().await
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Name of the variable; its value lists the marks of all levels, outermost first.
pub(super) const VARIABLE: &str = "PERIHELION_MCP_PROCESS";

/// Rounds of searching, for processes that start other ones while they are being ended.
const ROUNDS: usize = 5;

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
        for _ in 0..ROUNDS {
            let mut carriers = marked();
            carriers.retain(|(_, marks)| marks.contains(&self.0));
            if carriers.is_empty() {
                break;
            }
            for (carrier, _) in carriers {
                // A process that has ended by now needs no signal.
                let _ = kill(carrier, Signal::SIGKILL);
            }
        }
    }
}

/// Kills remaining servers of processes that died before they could end them.
///
/// A process of another namespace is left alone, because the status of its owner is unknown here.
fn kill_orphans() {
    for (id, marks) in marked() {
        let is_orphaned = |mark: &String| {
            let Some((_, owner)) = mark.split_once('.') else { return false };
            let Some((process, _)) = owner.split_once('.') else { return false };
            let is_of_here = owner.ends_with(&namespace());
            is_of_here && process.parse().ok().and_then(self::owner).as_deref() != Some(owner)
        };
        if marks.iter().any(is_orphaned) {
            tracing::info!(process = %id, "ending an MCP server process whose owner died");
            let _ = kill(id, Signal::SIGKILL);
        }
    }
}

/// Identifies a process while the machine runs: its number, its start time, and its PID namespace.
fn owner(process: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name is in parentheses and may contain any character.
    let began = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    Some(format!("{process}.{began}.{}", namespace()))
}

fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// Lists the processes with marks, and their marks; empty without `/proc`.
fn marked() -> Vec<(Pid, Vec<String>)> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: i32| {
        // Other users' processes cannot be read, and are none of ours.
        let environment = std::fs::read(format!("/proc/{id}/environ")).ok()?;
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
        let marks = String::from_utf8_lossy(value).split('/').map(str::to_owned).collect();
        Some((Pid::from_raw(id), marks))
    })
    .collect()
}
