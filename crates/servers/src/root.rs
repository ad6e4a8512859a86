//! A served directory: paths are opened one name at a time, so neither `..` nor links lead out of it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, fstatat};

/// Most links that one path follows.
const LINKS: usize = 40;

/// How a directory on the path is opened: it need not be readable.
#[cfg(target_os = "linux")]
const STEP: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY);
#[cfg(not(target_os = "linux"))]
const STEP: OFlag = OFlag::O_DIRECTORY;

/// How the end of a path is opened: without waiting for a pipe's writer.
const END: OFlag = OFlag::O_NONBLOCK;

/// The directory as a capability: files opened through it are in it.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    /// Opens the directory.
    ///
    /// # Errors
    /// When it does not exist or is not a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let directory = File::open(path)?;
        if !directory.metadata()?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Self(directory.into()))
    }

    /// Opens a file or directory for reading.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] for a path that leads out of the directory.
    pub fn file(&self, path: &str) -> Result<File> {
        let mut names = Vec::new();
        prepend(&mut names, Path::new(path))?;
        let mut parents: Vec<OwnedFd> = Vec::new();
        let mut links = 0;
        while let Some(name) = names.pop() {
            if name == ".." {
                parents.pop().ok_or_else(outside)?;
                continue;
            }
            let here = parents.last().unwrap_or(&self.0);
            let flags = if names.is_empty() { END } else { STEP };
            match openat(
                here,
                name.as_os_str(),
                flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
                Mode::empty(),
            ) {
                Ok(end) if names.is_empty() => return Ok(end.into()),
                Ok(directory) => parents.push(directory),
                Err(error) => {
                    let Ok(target) = readlinkat(here, name.as_os_str()) else {
                        return Err(error.into());
                    };
                    links += 1;
                    if links > LINKS {
                        return Err(Errno::ELOOP.into());
                    }
                    prepend(&mut names, Path::new(&target))?;
                }
            }
        }
        let here = parents.last().unwrap_or(&self.0);
        Ok(openat(here, ".", OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?.into())
    }

    /// Returns the names in a directory with their kinds; links are not followed.
    ///
    /// # Errors
    /// As [`Root::file`], and when the path is not a directory.
    pub fn entries(&self, path: &str) -> Result<Vec<(String, FileStat)>> {
        let directory = self.file(path)?;
        let mut entries = Vec::new();
        for entry in Dir::from_fd(directory.try_clone()?.into())?.iter() {
            let entry = entry?;
            let name = entry.file_name();
            // An entry without metadata was removed in the meantime.
            let found = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW);
            if let Ok(found) = found
                && name != c"."
                && name != c".."
            {
                entries.push((name.to_string_lossy().into_owned(), found));
            }
        }
        Ok(entries)
    }
}

/// Puts the names of a path before the remaining ones, which are in reverse order.
fn prepend(names: &mut Vec<OsString>, path: &Path) -> Result<()> {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => names.push("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    Ok(())
}

fn outside() -> Error {
    Error::new(ErrorKind::PermissionDenied, "the path leads out of the directory")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn read(root: &Root, path: &str) -> Result<String> {
        let mut text = String::new();
        root.file(path)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn paths_and_links_inside_are_followed_and_links_to_the_outside_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().join("tree");
        std::fs::create_dir_all(at.join("a/b")).unwrap();
        std::fs::write(home.path().join("secret"), "secret").unwrap();
        std::fs::write(at.join("a/b/text"), "text").unwrap();
        for (target, link) in [
            ("a/b", "inside"),
            ("../inside/text", "a/chain"),
            ("loop", "loop"),
            ("..", "up"),
            ("../secret", "out"),
            ("../tree/a/b/text", "out_and_back"),
            ("inside/../../../secret", "roundabout"),
        ] {
            symlink(target, at.join(link)).unwrap();
        }
        symlink(at.join("a"), at.join("absolute")).unwrap();
        let root = Root::open(&at).unwrap();
        for path in [
            "a/b/text",
            "./a//b/./text",
            "a/b/../b/text",
            "inside/text",
            "a/chain",
            "inside/../b/text",
        ] {
            assert_eq!(read(&root, path).unwrap(), "text", "{path}");
        }
        for path in [
            "..",
            "../tree/a",
            "/",
            "/etc/passwd",
            "up",
            "up/secret",
            "out",
            "out_and_back",
            "roundabout",
            "absolute/b/text",
            "a/../../secret",
            "a/b/../../../secret",
        ] {
            assert_eq!(root.file(path).unwrap_err().kind(), ErrorKind::PermissionDenied, "{path}");
        }
        for (path, kind) in [
            ("none", ErrorKind::NotFound),
            ("none/../a", ErrorKind::NotFound),
            ("a/b/text/more", ErrorKind::NotADirectory),
            ("a/b/text/..", ErrorKind::NotADirectory),
        ] {
            assert_eq!(root.file(path).unwrap_err().kind(), kind, "{path}");
        }
        assert_eq!(root.file("loop").unwrap_err().raw_os_error(), Some(Errno::ELOOP as i32));
        let mut names: Vec<String> =
            root.entries("a/..").unwrap().into_iter().map(|one| one.0).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["a", "absolute", "inside", "loop", "out", "out_and_back", "roundabout", "up"]
        );
        assert!(Root::open(&at.join("a/b/text")).is_err() && root.entries("a/b/text").is_err());
    }

    #[test]
    fn a_directory_replaced_by_a_link_leads_to_no_other_place() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().join("root");
        std::fs::create_dir_all(at.join("a")).unwrap();
        std::fs::create_dir_all(home.path().join("b")).unwrap();
        std::fs::write(at.join("a/text"), "text").unwrap();
        std::fs::write(home.path().join("b/text"), "secret").unwrap();
        symlink("../b", at.join("link")).unwrap();
        let root = Root::open(&at).unwrap();
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    for (from, to) in [("a", "rest"), ("link", "a"), ("a", "link"), ("rest", "a")] {
                        std::fs::rename(at.join(from), at.join(to)).unwrap();
                    }
                }
            });
            for _ in 0..20_000 {
                if let Ok(text) = read(&root, "a/text") {
                    assert_eq!(text, "text");
                }
            }
            ends.store(true, Ordering::Relaxed);
        });
    }
}
