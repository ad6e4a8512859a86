//! The command line of a confined Python.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Interpreter;
use crate::request::DRIVER;
use crate::{Limits, Program};

/// Folders of the system without which nothing starts, all for reading.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache"];
/// Bounds the process before bubblewrap starts, then hands it the filter on descriptor 9.
///
/// One bound at a time: Debian's `sh` takes no more than one in a command.
const START: &str = r#"ulimit -v "$1" && ulimit -t "$2" && ulimit -f "$3" && ulimit -c 0 && ulimit -n 256 &&
    exec 9<"$4" && shift 4 && exec "$@""#;

impl Interpreter {
    /// Makes the command of one run.
    pub fn command(&self, program: &Program, limits: &Limits) -> Command {
        let mut command = Command::new("/bin/sh");
        command.env_clear().args(["-c", START, "sh"]);
        // Kilobytes, seconds, and blocks of 512 bytes.
        command.arg((limits.memory_bytes / 1024).to_string());
        command.arg((limits.time.as_secs() + 1).to_string());
        command.arg((limits.file_bytes / 512).max(1).to_string());
        command.arg(self.filter.path());
        command.arg(&self.bubblewrap);
        command.args([
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--clearenv",
        ]);
        command.args(["--seccomp", "9", "--proc", "/proc", "--dev", "/dev"]);
        let size = limits.file_bytes.to_string();
        for folder in ["/tmp", "/work"] {
            // The size belongs to the next file system alone.
            command.args(["--size", &size, "--tmpfs", folder]);
        }
        for folder in SYSTEM {
            command.args(["--ro-bind-try", folder, folder]);
        }
        for folder in &self.folders {
            command.arg("--ro-bind").arg(folder).arg(folder);
        }
        let environment = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/work"),
            ("TMPDIR", "/tmp"),
            ("LANG", "C.UTF-8"),
            ("TZ", "UTC"),
            ("PYTHONHASHSEED", "0"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            // Each thread of the linear algebra library reserves memory of its own.
            ("OPENBLAS_NUM_THREADS", "1"),
            ("OMP_NUM_THREADS", "1"),
        ];
        for (name, value) in environment {
            command.args(["--setenv", name, value]);
        }
        command
            .args(["--chdir", "/work", "--"])
            .arg(&self.python)
            .args(["-s", "-P", "-c", DRIVER, "-"]);
        let _ = program;
        command
    }
}

/// Finds a program in the folders of a path.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|found| found.is_file())
}

/// Asks a Python where its interpreter and its folders are, which behind a version manager is not where it was found.
pub fn installation(python: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let ask = "import sys, site; print(sys.executable); print(sys.prefix); print(sys.base_prefix)";
    let answer = Command::new(python).args(["-I", "-c", ask]).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let mut lines = text.lines();
    let executable = std::fs::canonicalize(lines.next()?).ok()?;
    let mut folders: Vec<PathBuf> = lines
        .map(PathBuf::from)
        .filter(|folder| !folder.starts_with("/usr") && folder.is_absolute())
        .collect();
    folders.dedup();
    Some((executable, folders))
}
