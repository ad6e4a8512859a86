//! Asks a program of somebody else's to read documents that ours cannot, or not as well.
//!
//! The program gets a document on standard input and its name as the only argument, and writes Markdown. What it writes is
//! parsed like any other document. Invariant: nothing of it is left running, whatever becomes of the request.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::Error;

/// Variables of the environment that the program sees: no secret is among them.
const PASSED: [&str; 5] = ["PATH", "HOME", "TMPDIR", "LANG", "LC_ALL"];

/// Bytes of its last words that an error repeats.
const LAST_WORDS: usize = 400;

/// A program that reads documents.
#[derive(Clone, Debug)]
pub struct External {
    pub program: PathBuf,
    /// Endings of names whose documents it reads in place of our parser, without the dot; what our parser finds no text in
    /// or does not know it reads in any case.
    pub endings: Vec<String>,
    pub timeout: Duration,
}

/// Tells whether a name ends in one of the endings, which may begin with their dot; capitals make no difference.
pub fn ends_in(name: &str, endings: &[String]) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_it = |one: &String| {
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case(one.trim_start_matches('.')))
    };
    endings.iter().any(is_it)
}

impl External {
    /// Tells whether documents of this name are read by the program in the first place.
    pub(crate) fn is_for(&self, path: &str) -> bool {
        ends_in(path, &self.endings)
    }

    /// Makes the error that names the program.
    pub(crate) fn failed(&self, path: &str, reason: impl Into<String>) -> Error {
        let program = self.program.display().to_string();
        Error::External { path: path.to_owned(), program, reason: reason.into() }
    }

    /// Returns what the program writes about a document, at most so many bytes.
    ///
    /// # Errors
    /// [`Error::External`].
    pub(crate) async fn read(
        &self,
        path: &str,
        bytes: &[u8],
        most: usize,
    ) -> Result<Vec<u8>, Error> {
        let passed = PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut command = Command::new(&self.program);
        command.arg(plain_name(path)).env_clear().envs(passed);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| self.failed(path, format!("it cannot be started: {error}")))?;
        let group = Group::of(&child);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let exchange = async {
            let ((), read, said) =
                tokio::join!(write(stdin, bytes), take(stdout, most), last_words(stderr));
            Ok::<_, std::io::Error>((read?, said, child.wait().await?))
        };
        let ended = tokio::time::timeout(self.timeout, exchange).await;
        drop(group);
        match ended {
            Err(_) => {
                let seconds = self.timeout.as_secs_f64();
                Err(self.failed(path, format!("it is not done within {seconds} s")))
            }
            Ok(Err(error)) => Err(self.failed(path, error.to_string())),
            Ok(Ok((text, ..))) if text.len() > most => {
                Err(self.failed(path, format!("it writes more than {most} bytes")))
            }
            Ok(Ok((_, said, status))) if !status.success() => {
                Err(self.failed(path, ended_badly(status, &said)))
            }
            Ok(Ok((text, ..))) => Ok(text),
        }
    }
}

fn ended_badly(status: ExitStatus, said: &str) -> String {
    match said.is_empty() {
        true => status.to_string(),
        false => format!("{status}: {said}"),
    }
}

/// Returns the last part of a path with letters that no shell takes for anything else.
fn plain_name(path: &str) -> String {
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

/// Reads all that is said on standard error and returns the end of it, in one line.
async fn last_words(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut kept = Vec::new();
    while let Ok(1..) = stderr.read_buf(&mut kept).await {
        kept.drain(..kept.len().saturating_sub(LAST_WORDS));
    }
    let said = String::from_utf8_lossy(&kept);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
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
    fn names_are_plain_and_endings_are_compared_without_case() {
        assert_eq!(plain_name("/a/b c;`d`.PDF"), "b_c__d_.PDF");
        assert_eq!(plain_name("-rf"), "_rf");
        assert_eq!(plain_name("/.."), "_.");
        let external = External {
            program: "x".into(),
            endings: vec!["pdf".into(), ".Doc".into()],
            timeout: Duration::from_secs(1),
        };
        assert!(external.is_for("A.PDF") && external.is_for("a.doc"));
        assert!(!external.is_for("pdf") && !external.is_for("a.docx"));
    }
}
