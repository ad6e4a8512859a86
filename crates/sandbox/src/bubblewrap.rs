//! The arguments of bubblewrap, for everything that Perihelion confines with it.
//!
//! Enter at [`Bubblewrap::new`], end with [`Bubblewrap::run`]. Invariant: the confined program writes to directories in memory and to the
//! paths that its operator lists, and to no other file. The root directory, `/dev` and all of `/proc` are read-only mounts, because
//! the files below `/proc/sys` belong to root of the host whatever the namespace says: without capabilities, root may still write them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Directories of the system, without which no program starts; read-only.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// Memory that processes share, and the semaphores of threads.
const SHARED: &str = "/dev/shm";
/// The user that a confined program is when root starts it.
const NOBODY: &str = "65534";
/// Smallest directory in memory, in bytes: a size of zero would be no bound.
const PAGE: u64 = 4096;

/// A command line of bubblewrap; later mounts cover earlier ones.
#[derive(Debug)]
pub struct Bubblewrap {
    words: Vec<OsString>,
    /// Mounts that become read-only once everything is in place.
    sealed: Vec<&'static str>,
}

impl Bubblewrap {
    /// Starts with new namespaces, no capabilities, `/proc` and `/dev`; `shared_bytes` bounds `/dev/shm`.
    pub fn new(shared_bytes: Option<u64>) -> Self {
        let mut line = Self { words: Vec::new(), sealed: vec!["/dev", "/"] };
        line.add(["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
        // `--unshare-all` leaves the user namespace out when root asks.
        line.add(["--unshare-user", "--disable-userns"]);
        if nix::unistd::geteuid().is_root() {
            line.add(["--uid", NOBODY, "--gid", NOBODY]);
        }
        line.add(["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]);
        line.scratch(Path::new(SHARED), shared_bytes);
        line
    }

    /// Shows the system's programs and libraries for reading.
    pub fn system(&mut self) {
        for path in SYSTEM {
            self.read_only_if_present(Path::new(path));
        }
    }

    pub fn add<T: Into<OsString>>(&mut self, words: impl IntoIterator<Item = T>) {
        self.words.extend(words.into_iter().map(Into::into));
    }

    /// Mounts an empty directory in memory for at most `bytes`; without a bound, half of the machine's memory.
    pub fn scratch(&mut self, path: &Path, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            // The size applies to the next directory only.
            self.add(["--size".to_owned(), bytes.max(PAGE).to_string()]);
        }
        self.add([OsStr::new("--tmpfs"), path.as_os_str()]);
    }

    pub fn read_only(&mut self, path: &Path) {
        self.bind("--ro-bind", path);
    }

    pub fn read_only_if_present(&mut self, path: &Path) {
        self.bind("--ro-bind-try", path);
    }

    pub fn writable(&mut self, path: &Path) {
        self.bind("--bind", path);
    }

    fn bind(&mut self, how: &str, path: &Path) {
        // The host's own mount is not made read-only against the operator's word.
        self.sealed.retain(|sealed| !Path::new(sealed).starts_with(path));
        self.add([OsStr::new(how), path.as_os_str(), path.as_os_str()]);
    }

    /// Ends the command line with the program, which starts in `directory`.
    pub fn run<T: Into<OsString>>(
        mut self,
        directory: &Path,
        program: &Path,
        args: impl IntoIterator<Item = T>,
    ) -> Vec<OsString> {
        for path in std::mem::take(&mut self.sealed) {
            self.add(["--remount-ro", path]);
        }
        self.add([OsStr::new("--chdir"), directory.as_os_str(), OsStr::new("--")]);
        self.add([program]);
        self.add(args);
        self.words
    }
}

/// Finds a program as a shell in `from` does: by its path if it has one, otherwise in the directories of `PATH`.
pub fn find_program(program: &Path, path: &OsStr, from: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return std::path::absolute(from.join(program)).ok().filter(|found| found.is_file());
    }
    std::env::split_paths(path)
        .map(|directory| directory.join(program))
        .find(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: Bubblewrap) -> String {
        let words = line.run(Path::new("/work"), Path::new("/bin/true"), ["-x"]);
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn writable_paths_have_a_size_and_the_rest_is_sealed_after_the_last_mount() {
        let mut line = Bubblewrap::new(Some(1));
        line.scratch(Path::new("/work"), Some(9_000));
        line.system();
        line.read_only(Path::new("/srv/data"));
        let text = written(line);
        let tmpfs: Vec<&str> = text.split("--size ").skip(1).map(|rest| &rest[..20]).collect();
        assert_eq!(tmpfs.len(), text.matches("--tmpfs").count(), "{text}");
        assert!(text.contains("--size 4096 --tmpfs /dev/shm"), "{text}");
        assert!(text.contains("--size 9000 --tmpfs /work"), "{text}");
        assert!(text.contains("--unshare-user --disable-userns"), "{text}");
        assert!(text.contains("--proc /proc --remount-ro /proc "), "{text}");
        let end = "--ro-bind /srv/data /srv/data --remount-ro /dev --remount-ro / --chdir /work -- /bin/true -x";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_listed_path_that_covers_a_sealed_one_stays_as_it_was_listed() {
        for (path, sealed) in [("/", 0), ("/dev", 1), ("/dev/dri", 2), ("/srv", 2)] {
            let mut line = Bubblewrap::new(None);
            line.writable(Path::new(path));
            let count = written(line).matches("--remount-ro /").count();
            assert_eq!(count, sealed + 1, "{path}");
        }
    }
}
