//! Which SQLite files this process has open, so that a second SQLite library on one of them is refused.
//!
//! POSIX drops all locks of a process on a file when any descriptor of it is closed: two libraries void each other's locks.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::error::Error;

/// Device and inode.
type Identity = (u64, u64);

static OPEN: Mutex<Option<HashMap<Identity, usize>>> = Mutex::new(None);

#[cfg(unix)]
fn identity_of(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity_of(_path: &Path) -> Option<Identity> {
    None
}

/// Whether a descriptor of this process points at the file.
fn has_descriptor(identity: Identity) -> bool {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return false };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.iter().any(|path| identity_of(path) == Some(identity))
}

/// A file that this library has open; given up when dropped.
#[derive(Debug)]
pub struct OpenFile(Option<Identity>);

impl OpenFile {
    /// Notes that a file is opened, fails if another library has it open; creates it if it is missing and is written.
    ///
    /// An existing file is not opened here: closing it would drop the locks of the connections that use it.
    pub fn register(path: &Path, read_only: bool) -> Result<Self, Error> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if !read_only && identity_of(path).is_none() {
            let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
            made.map(drop).or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })?;
        }
        let Some(identity) = identity_of(path) else { return Ok(Self(None)) };
        if !open.contains_key(&identity) && has_descriptor(identity) {
            return Err(Error::OpenElsewhere(path.display().to_string()));
        }
        *open.entry(identity).or_default() += 1;
        Ok(Self(Some(identity)))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some(identity) = self.0 else { return };
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if let Some(count) = open.get_mut(&identity) {
            *count -= 1;
            if *count == 0 {
                open.remove(&identity);
            }
        }
    }
}

/// Whether this library has a file open.
#[pyfunction]
pub fn is_open(path: PathBuf) -> bool {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    identity_of(&path)
        .is_some_and(|identity| open.as_ref().is_some_and(|open| open.contains_key(&identity)))
}
