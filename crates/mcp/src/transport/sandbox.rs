//! Confines a server with bubblewrap: its own file system view, process namespace and, unless allowed, no network.
//!
//! The server sees only listed paths. Without the sandbox, the server is not started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::program::Program;
use crate::configuration::Sandbox;
use perihelion_sandbox::{Bubblewrap, find_program};

/// The files under `/etc` that programs need: libraries, time zone, names, certificates. No passwords, no keys.
const ETC: &str = "alternatives ca-certificates group hosts ld.so.cache ld.so.conf localtime nsswitch.conf \
     passwd pki resolv.conf ssl";

/// The directory in which a confined server starts, unless `cwd` names another: empty, private, in memory.
const SCRATCH: &str = "/tmp";

/// Why a server cannot be confined, and the way out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unconfined {
    #[error(
        "its sandbox needs bubblewrap, but there is no `bwrap` on the PATH of this process; install bubblewrap, or \
         remove `sandbox` from the server's table"
    )]
    NoBubblewrap,
    #[error("cannot find the program to confine: {}", .0.display())]
    NoProgram(PathBuf),
    #[error("its cwd is not a usable path: {source}: {cwd}")]
    Cwd { cwd: String, source: std::io::Error },
}

impl Sandbox {
    /// Wraps a command.
    ///
    /// The environment is not passed in the arguments, which are public: bubblewrap passes on its own, which is only
    /// the server's allow-list.
    pub(super) fn confine<'a>(&self, server: Program<'a>) -> Result<Program<'a>, Unconfined> {
        let find = |path: OsString| find_program("bwrap".as_ref(), &path, "".as_ref());
        let bwrap = std::env::var_os("PATH").and_then(find);
        let bwrap = bwrap.ok_or(Unconfined::NoBubblewrap)?;
        let program = server.find().ok_or_else(|| Unconfined::NoProgram(server.program.clone()))?;
        let start = match server.cwd {
            // Inside, a relative one would start at the root.
            Some(cwd) => std::path::absolute(cwd)
                .map_err(|source| Unconfined::Cwd { cwd: cwd.to_owned(), source })?,
            None => PathBuf::from(SCRATCH),
        };
        // What is in memory counts together: half for files, a quarter each for the home directory and for shared memory.
        let quarter = self.scratch_bytes.map(|bytes| bytes / 4);
        let mut line = Bubblewrap::new(quarter);
        if self.network {
            line.add(["--share-net"]);
        }
        // Later mounts cover earlier ones, so what the operator lists comes last.
        line.scratch(Path::new(SCRATCH), quarter.map(|bytes| bytes * 2));
        match server.env.get("HOME").map(Path::new) {
            Some(home) if home.starts_with(SCRATCH) => {
                line.add([OsStr::new("--dir"), home.as_os_str()])
            }
            Some(home) if home.is_absolute() && home.parent().is_some() => {
                line.scratch(home, quarter)
            }
            _ => {}
        }
        line.system();
        for name in ETC.split(' ') {
            line.read_only_if_present(&Path::new("/etc").join(name));
        }
        line.read_only(&program);
        for path in &self.read_only {
            line.read_only(path);
        }
        for path in &self.writable {
            line.writable(path);
        }
        line.add(["--setenv", "TMPDIR", SCRATCH]);
        let words = line.run(&start, &program, &server.args);
        let args = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        // Bubblewrap itself changes to the directory, inside.
        Ok(Program { program: bwrap, args, cwd: None, ..server })
    }
}

/// Returns the way out for a confined server that did not start, if its last words blame the sandbox.
pub(super) fn way_out(last_words: &str) -> Option<&'static str> {
    let (_, complaint) = last_words.split_once("bwrap: ")?;
    let is = |signs: &[&str]| signs.iter().any(|words| complaint.contains(words));
    if is(&["namespace", "Can't mount proc", "setting up uid map", "Operation not permitted"]) {
        return Some(
            "this system does not let bubblewrap make namespaces. Allow unprivileged user namespaces (see \
             kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; in a container, \
             its security profile). Or remove `sandbox` from the server's table to run it unconfined",
        );
    }
    is(&["No such file or directory", "Can't find source path"]).then_some(
        "in its sandbox a server sees only system directories, its own program file and what `sandbox` lists \
         in read_only and writable",
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn denied_kernel_calls_and_unlisted_paths_are_reported_with_the_fix() {
        let out = |words: &str| way_out(&format!("its last words on stderr: bwrap: {words}"));
        let unprivileged = "Creating new namespace failed: Operation not permitted";
        assert!(out(unprivileged).unwrap().contains("userns_clone"));
        let unmounted = "Can't mount proc on /newroot/proc: Operation not permitted";
        assert!(out(unmounted).unwrap().contains("container"));
        let missing = "execvp node: No such file or directory";
        assert!(out(missing).unwrap().contains("read_only and writable"));
        assert_eq!(way_out("it exited with code 3"), None);
    }

    /// X6
    #[test]
    fn a_confined_server_writes_to_its_own_directories_within_the_bound_and_to_no_setting() {
        // Opened for appending and never written, in case it succeeds.
        let script =
            "for path in /proc/sys/kernel/domainname /proc/self/comm /x /etc/x /dev/x /usr/x; do
                (: >> $path) 2>/dev/null && echo opened $path
            done
            for place in /tmp $HOME /dev/shm; do
                head -c 100000000 /dev/zero > $place/x 2>/dev/null
                wc -c < $place/x
            done";
        let sandbox = Sandbox { scratch_bytes: Some(4 << 20), ..Sandbox::default() };
        let env = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let env = BTreeMap::from([env("PATH", "/usr/bin:/bin"), env("HOME", "/home/ada")]);
        let args = vec!["-c".to_owned(), script.to_owned()];
        let server = Program { program: "sh".into(), args, env: &env, cwd: None };
        let confined = match sandbox.confine(server) {
            Ok(confined) => confined,
            Err(reason) => {
                assert!(std::env::var_os("CI").is_none(), "the sandbox is not tested: {reason}");
                eprintln!("nothing was tested: {reason}");
                return;
            }
        };
        let mut command = std::process::Command::new(&confined.program);
        let output = command.args(&confined.args).env_clear().envs(&env).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("bwrap: ") {
            assert!(std::env::var_os("CI").is_none(), "the sandbox is not tested: {stderr}");
            eprintln!("nothing was tested: {stderr}");
            return;
        }
        let sizes = ["2097152", "1048576", "1048576"].join("\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), sizes, "{stderr}");
    }
}
