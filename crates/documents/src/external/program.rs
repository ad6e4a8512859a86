//! A program of this machine that reads documents.
//!
//! It gets a document on standard input and its name as the only argument, and writes Markdown. Invariant: no process
//! of it stays, with any end of the request.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::Failure;

/// Variables of the environment that the program sees: no secret is among them.
const PASSED: [&str; 5] = ["PATH", "HOME", "TMPDIR", "LANG", "LC_ALL"];

/// Bytes of its last words that an error repeats.
const LAST_WORDS: usize = 400;

/// Returns the program's output for a document, up to a number of bytes; the error has the reason of a failure.
pub(crate) async fn read(
    program: &Path,
    path: &str,
    bytes: &[u8],
    most: usize,
    time: Duration,
) -> Result<Vec<u8>, Failure> {
    let passed = PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let mut command = Command::new(program);
    command.arg(plain_name(path)).env_clear().envs(passed);
    let Ended { output: text, status, last_words: output } =
        run(command, bytes, most, time).await?;
    if text.len() > most {
        return Err(Failure::TooLong(most));
    }
    if status.success() { Ok(text) } else { Err(Failure::Exit { status, output }) }
}

pub(crate) struct Ended {
    /// One byte more than wanted, if there are more.
    pub output: Vec<u8>,
    pub status: ExitStatus,
    last_words: String,
}

/// Runs a program with bytes for its standard input, and reads a number of bytes of its output.
pub(crate) async fn run(
    mut command: Command,
    bytes: &[u8],
    most: usize,
    time: Duration,
) -> Result<Ended, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(Failure::Start)?;
    // Dropped with this future, so that an end of the request ends them all.
    let group = Group::of(&child);
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let exchange = async {
        let ((), read, last_words) =
            tokio::join!(write(stdin, bytes), take(stdout, most), last_words(stderr));
        Ok(Ended { output: read?, status: child.wait().await?, last_words })
    };
    match tokio::time::timeout(time, exchange).await {
        Ok(ended) => ended,
        Err(_) => {
            drop(group);
            child.wait().await?;
            Err(Failure::Timeout(time.as_secs_f64()))
        }
    }
}

/// Returns the last part of a path with letters that no shell takes for anything else.
pub(crate) fn plain_name(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    match name.strip_prefix(['-', '.']) {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

async fn write(stdin: Option<ChildStdin>, bytes: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program that ends early says why by its status.
        let _ = stdin.write_all(bytes).await;
    }
}

async fn take(stdout: Option<ChildStdout>, most: usize) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take((most as u64).saturating_add(1)).read_to_end(&mut text).await?;
    }
    Ok(text)
}

async fn last_words(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut kept = Vec::new();
    while let Ok(1..) = stderr.read_buf(&mut kept).await {
        kept.drain(..kept.len().saturating_sub(LAST_WORDS));
    }
    let output = String::from_utf8_lossy(&kept);
    output.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The process group of a child, killed when it is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            // An empty group answers ESRCH, which is as good.
            let _ = killpg(id, Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert_eq!(plain_name("/a/b c;`d`.PDF"), "b_c__d_.PDF");
        assert_eq!(plain_name("-rf"), "_rf");
        assert_eq!(plain_name("/.."), "_.");
    }
}
