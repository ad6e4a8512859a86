//! Bounds the memory of a server: each process by its own limit, the whole tree by a cgroup if possible.
//!
//! The limit counts used memory (`RLIMIT_DATA`), not reserved memory, so that runtimes that reserve much still run. A
//! shell sets it and becomes the program: the limit applies from its first instruction on, for all that it starts, and
//! cannot be raised again.

use std::fs;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::program::Program;

/// The shell that sets the limits; it has no other part in what runs.
const SHELL: &str = "/bin/sh";

/// Sets the limit in kilobytes, joins the cgroup if there is one, and becomes the program.
const LAUNCH: &str = "ulimit -d \"$1\" || exit 126; if [ -n \"$2\" ]; then echo $$ > \"$2/cgroup.procs\" || exit 126; fi; \
                      shift 2; exec \"$@\"";

/// The messages of programs without memory.
const COMPLAINTS: [&str; 7] = [
    "memory allocation of",
    "memoryerror",
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "enomem",
    "oomkilled",
];

const MEGABYTE: u64 = 1024 * 1024;

/// The bound on a running server's memory; its cgroup goes with it.
#[derive(Debug)]
pub(super) struct Bound {
    megabytes: u64,
    group: Option<PathBuf>,
}

impl Bound {
    /// Makes the bound, and a cgroup for the server's processes if this process has the permission.
    pub fn new(megabytes: u64) -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = group(Path::new("/sys/fs/cgroup"), &groups, megabytes * MEGABYTE);
        Self { megabytes, group }
    }

    pub fn launch<'a>(&self, program: Program<'a>) -> Result<Program<'a>, std::io::Error> {
        let found = program.find();
        let found = found.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))?;
        let group = self.group.as_ref().map(|group| group.display().to_string());
        let kilobytes = (self.megabytes * 1024).to_string();
        let shell = ["-c", LAUNCH, "sh", &kilobytes, &group.unwrap_or_default()];
        let mut line: Vec<String> = shell.iter().map(|word| (*word).to_owned()).collect();
        line.push(found.display().to_string());
        line.extend(program.args);
        Ok(Program { program: SHELL.into(), args: line, ..program })
    }

    /// Explains, after a server's end, that it had too little memory; `None` if that is unknown.
    pub fn explain(&self, last_words: &str) -> Option<String> {
        let text = last_words.to_lowercase();
        let ended = self.group.as_deref().is_some_and(killed);
        (ended || COMPLAINTS.iter().any(|words| text.contains(words))).then(|| {
            let of = if self.group.is_some() {
                "its processes may use"
            } else {
                "each of its processes may use"
            };
            format!(
                "it reached the bound on its memory: {of} {} MB (memory_mb in its table)",
                self.megabytes
            )
        })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            // Its processes were killed before; a stuck one keeps the empty directory and nothing else.
            let _ = fs::remove_dir(group);
        }
    }
}

/// Returns whether the kernel ended a process of the cgroup because of its memory.
fn killed(group: &Path) -> bool {
    let events = fs::read_to_string(group.join("memory.events")).unwrap_or_default();
    let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.is_some_and(|count| count.trim() != "0")
}

/// Makes a cgroup (version 2) below this process's own or next to it, if it was delegated to its user.
fn group(root: &Path, groups: &str, bytes: u64) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = root.join(own);
    // Beside it only inside a service of its own: the root and slices are shared with others.
    let beside = own.parent().filter(|parent| {
        *parent != root
            && parent.starts_with(root)
            && parent.extension().is_none_or(|kind| kind != "slice")
    });
    [Some(own.as_path()), beside].into_iter().flatten().find_map(|parent| {
        let controllers = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
        if !controllers.split_whitespace().any(|one| one == "memory") {
            return None;
        }
        let made = parent.join(format!("perihelion-{}", Uuid::new_v4().simple()));
        fs::create_dir(&made).ok()?;
        let bounded = fs::write(made.join("memory.max"), bytes.to_string()).is_ok()
            // Swap would only make the end slow, and one process without its others is no server.
            && [("memory.swap.max", "0"), ("memory.oom.group", "1")]
                .iter()
                .all(|(file, value)| fs::write(made.join(file), value).is_ok());
        if !bounded {
            let _ = fs::remove_dir(&made);
        }
        bounded.then_some(made)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X6
    #[test]
    fn a_cgroup_is_made_only_if_memory_was_delegated() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        let service = root.join("system.slice/perihelion.service");
        fs::create_dir_all(service.join("main")).unwrap();
        let groups = "4:memory:/elsewhere\n0::/system.slice/perihelion.service/main\n";
        assert_eq!(group(root, groups, 7), None, "nothing is delegated");
        fs::write(root.join("system.slice/cgroup.subtree_control"), "cpu memory").unwrap();
        assert_eq!(group(root, "0::/system.slice/perihelion.service\n", 7), None, "a shared slice");
        assert_eq!(group(root, "4:memory:/elsewhere\n", 7), None, "version 1");
        fs::write(service.join("cgroup.subtree_control"), "memory pids").unwrap();
        let made = group(root, groups, 7 * MEGABYTE).unwrap();
        assert_eq!(made.parent(), Some(service.as_path()));
        assert_eq!(fs::read_to_string(made.join("memory.max")).unwrap(), "7340032");

        let bound = Bound { megabytes: 7, group: Some(made.clone()) };
        assert_eq!(bound.explain("it said goodbye"), None);
        fs::write(made.join("memory.events"), "oom 1\noom_kill 1\n").unwrap();
        assert!(bound.explain("").unwrap().contains("its processes may use 7 MB (memory_mb"));
    }
}
