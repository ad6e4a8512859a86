//! Confines a server with bubblewrap: its own file system view, process namespace and, unless allowed, no network.
//!
//! What is not listed does not exist for the server. Where the sandbox cannot be had, the server is not started.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::configuration::Sandbox;

/// Directories of the system, without which no program starts; all for reading.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// What programs look up under `/etc`: libraries, time zone, names, certificates. No passwords, no keys.
const ETC: [&str; 12] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
];

/// The directory in which a confined server starts, unless `cwd` names another: empty, private, in memory.
const SCRATCH: &str = "/tmp";

/// What of `/proc` could change the system, or tells of it more than of the server.
const PROC: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// Who a confined server is when root starts it.
const NOBODY: &str = "65534";

/// The command that starts a confined program.
pub(super) struct Confined {
    pub program: PathBuf,
    pub args: Vec<String>,
}

impl Sandbox {
    /// Wraps a command.
    ///
    /// The environment is not put into the arguments, where everybody could read it: bubblewrap passes on
    /// its own, which is the server's allow-list and nothing else.
    ///
    /// # Errors
    /// Why there is no sandbox, and the way out.
    pub(super) fn confine(
        &self,
        program: &Path,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&str>,
    ) -> Result<Confined, String> {
        let bwrap = std::env::var_os("PATH").and_then(|path| find("bwrap".as_ref(), &path));
        let bwrap = bwrap.ok_or(
            "its sandbox needs bubblewrap, and there is no `bwrap` on the PATH of this process: install the \
             package bubblewrap, or remove `sandbox` from the server's table to run it unconfined",
        )?;
        let path = env.get("PATH").map(AsRef::as_ref).unwrap_or_default();
        let program = find(program, path)
            .ok_or_else(|| format!("cannot find the program to confine: {}", program.display()))?;
        let start = match cwd {
            // Inside, a relative one would start at the root.
            Some(cwd) => text(
                &std::path::absolute(cwd)
                    .map_err(|error| format!("its cwd is not a usable path: {error}: {cwd}"))?,
            ),
            None => SCRATCH.to_owned(),
        };
        let mut line = Line::default();
        line.words(&["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
        // `--unshare-all` goes without a user namespace where it is root that asks.
        line.words(&["--unshare-user", "--disable-userns"]);
        if nix::unistd::geteuid().is_root() {
            line.words(&["--uid", NOBODY, "--gid", NOBODY]);
        }
        if self.network {
            line.words(&["--share-net"]);
        }
        // Later mounts cover earlier ones, so what the operator lists comes last.
        line.words(&["--proc", "/proc", "--dev", "/dev"]);
        if let Some(bytes) = self.scratch_bytes {
            line.words(&["--size", &bytes.to_string()]);
        }
        line.words(&["--tmpfs", SCRATCH]);
        for settings in PROC {
            line.words(&["--ro-bind-try", settings, settings]);
        }
        if let Some(home) = env.get("HOME").filter(|home| home.starts_with('/') && home.len() > 1) {
            line.words(&["--dir", home]);
        }
        for system in SYSTEM.iter().chain(&ETC) {
            line.words(&["--ro-bind-try", system, system]);
        }
        line.bind("--ro-bind", &program);
        for path in &self.read_only {
            line.bind("--ro-bind", path);
        }
        for path in &self.writable {
            line.bind("--bind", path);
        }
        line.words(&["--setenv", "TMPDIR", SCRATCH, "--chdir", &start, "--"]);
        line.0.push(text(&program));
        line.0.extend(args.iter().cloned());
        Ok(Confined { program: bwrap, args: line.0 })
    }
}

/// Adds the way out to the reason why a confined server did not start, where the sandbox is to blame.
pub(super) fn explain(reason: String) -> String {
    let Some((_, complaint)) = reason.split_once("bwrap: ") else { return reason };
    let forbidden =
        ["namespace", "Can't mount proc", "setting up uid map", "Operation not permitted"];
    if forbidden.iter().any(|words| complaint.contains(words)) {
        return format!(
            "{reason}; this system does not let bubblewrap make namespaces: allow unprivileged user namespaces (see \
             kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; in a container, \
             its security profile), or remove `sandbox` from the server's table to run it unconfined"
        );
    }
    if complaint.contains("No such file or directory")
        || complaint.contains("Can't find source path")
    {
        return format!(
            "{reason}; in its sandbox a server sees only system directories, its own program file and what \
             `sandbox` lists in read_only and writable"
        );
    }
    reason
}

/// The arguments of bubblewrap.
#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn bind(&mut self, how: &str, path: &Path) {
        let path = text(path);
        self.words(&[how, &path, &path]);
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Finds a program as a shell does: by its path where it has one, otherwise in the directories of `PATH`.
pub(crate) fn find(program: &Path, path: &std::ffi::OsStr) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return std::path::absolute(program).ok().filter(|found| found.is_file());
    }
    std::env::split_paths(path)
        .map(|directory| directory.join(program))
        .find(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_and_what_is_not_listed_is_told_with_the_way_out() {
        let output =
            |words: &str| explain(format!("it ended; its last words on stderr: bwrap: {words}"));
        assert!(
            output("Creating new namespace failed: Operation not permitted")
                .contains("userns_clone")
        );
        assert!(
            output("Can't mount proc on /newroot/proc: Operation not permitted")
                .contains("container")
        );
        assert!(
            output("execvp node: No such file or directory").contains("read_only and writable")
        );
        assert_eq!(explain("it exited with code 3".into()), "it exited with code 3");
    }
}
