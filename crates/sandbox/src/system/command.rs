//! The command line of a confined Python.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Interpreter;
use crate::request::DRIVER;
use crate::{Bubblewrap, Limits};

/// The loader's cache, without which each library is searched for.
const LOADER_CACHE: &str = "/etc/ld.so.cache";
/// The working directory, which contains the directory for temporary files: one limit applies to both.
const WORK: &str = "/work";
/// The share of the file limit that threads' semaphores get, and their share of a small one.
const SHARED_BYTES: u64 = 1 << 20;
const SHARED_PART: u64 = 16;
/// Bounds the process before bubblewrap starts, then hands it the filter on descriptor 9.
///
/// One limit at a time, because Debian's `sh` accepts only one per command.
const START: &str = r#"ulimit -v "$1" && ulimit -t "$2" && ulimit -f "$3" && ulimit -c 0 && ulimit -n 256 &&
    exec 9<"$4" && shift 4 && exec "$@""#;
const ENVIRONMENT: [(&str, &str); 12] = [
    ("PATH", "/usr/bin:/bin"),
    ("HOME", WORK),
    ("TMPDIR", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    // Each thread of the linear algebra library reserves separate memory.
    ("OPENBLAS_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "1"),
    // Charts are files, and the fonts that were found are not among them.
    ("MPLBACKEND", "agg"),
    ("MPLCONFIGDIR", "/tmp/matplotlib"),
    ("XDG_CACHE_HOME", "/tmp/cache"),
];

impl Interpreter {
    pub fn command(&self, limits: &Limits) -> Command {
        let mut command = Command::new("/bin/sh");
        command.env_clear().args(["-c", START, "sh"]);
        // Kilobytes, seconds, and blocks of 512 bytes.
        command.arg((limits.memory_bytes / 1024).to_string());
        command.arg((limits.time.as_secs() + 1).to_string());
        command.arg((limits.file_bytes / 512).max(1).to_string());
        command.arg(self.filter.path());
        command.arg(&self.bubblewrap).args(self.confinement(limits.file_bytes as u64));
        command
    }

    /// Writes the arguments of bubblewrap; all writable directories together have space for `bytes`.
    fn confinement(&self, bytes: u64) -> Vec<OsString> {
        let shared = (bytes / SHARED_PART).min(SHARED_BYTES);
        let mut line = Bubblewrap::new(Some(shared));
        line.add(["--clearenv", "--seccomp", "9"]);
        line.scratch(Path::new(WORK), Some(bytes - shared));
        line.add(["--dir", "/work/.tmp", "--symlink", "work/.tmp", "/tmp"]);
        line.system();
        line.read_only_if_present(Path::new(LOADER_CACHE));
        for folder in &self.folders {
            line.read_only(folder);
        }
        for (host, inside) in self.packages.iter().zip(package_folders()) {
            line.add([OsStr::new("--ro-bind"), host.as_os_str(), inside.as_ref()]);
        }
        for (name, value) in ENVIRONMENT {
            line.add(["--setenv", name, value]);
        }
        line.run(Path::new(WORK), &self.python, ["-s", "-P", "-c", DRIVER, "-"])
    }
}

/// Yields where directories of packages are mounted, whatever they are called outside.
pub fn package_folders() -> impl Iterator<Item = String> {
    (0..).map(|number: usize| format!("/packages/{number}"))
}

/// Asks a Python for its interpreter and its folders, which a version manager keeps in another place.
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
