//! Threads at rest in files, in place of the database.
//!
//! Enter at [`Archiving`] and [`Archive`]. Invariants: a file has its name only when it is complete and on disk, and a
//! file that was cut or altered is refused. Deliberately absent: which threads have one; the store knows.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::dump::{Form, read_as, write_as};
use super::{Cause, Error, Result, ThreadDump, ThreadInfo, chain};
use crate::ids::ThreadId;

/// Moves threads at rest to files, and brings them back when their rows are needed.
///
/// Any method of the other traits that reads or changes the rows of an archived thread brings it back first; its row, its
/// runs and its place in lists stay in the database. A store without an archive moves nothing.
///
/// Crash contract: a thread is in the database, or its row names a complete file. A crash can leave a file that no thread
/// names: [`Archiving::sweep_archive`] removes it.
///
/// # Errors
/// [`Error::Archive`] for a file that cannot be written, [`Error::Corrupt`] for a damaged thread, which stays, and
/// [`Error::Database`]. Whatever needs a file that cannot be read: [`Error::Archived`].
#[async_trait]
pub trait Archiving: Send + Sync {
    /// Lists threads that can be archived and did not change since `before`, longest at rest first, those `after` one.
    async fn archivable(
        &self,
        _before: DateTime<Utc>,
        _after: (DateTime<Utc>, ThreadId),
        _limit: u32,
    ) -> Result<Vec<(DateTime<Utc>, ThreadId)>, Error> {
        Ok(Vec::new())
    }

    /// Moves a thread to a file, unless it changed since `before` or is not at rest; returns whether it did.
    async fn archive(&self, _thread: ThreadId, _before: DateTime<Utc>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Removes files that no thread names; returns how many.
    async fn sweep_archive(&self) -> Result<u64, Error> {
        Ok(0)
    }
}

/// The directory with the files of archived threads, which all processes of a database share.
#[derive(Clone, Debug)]
pub struct Archive(Arc<Path>);

/// The level of zstd. Archiving is not urgent, so it can take its time.
const LEVEL: i32 = 9;

impl Archive {
    /// Uses a directory that exists.
    pub fn new(directory: PathBuf) -> Self {
        Self(directory.into())
    }

    /// Returns the name of a new file, which no other one ever has.
    pub(super) fn name(thread: ThreadId) -> String {
        format!("{thread}-{}.jsonl.zst", Uuid::new_v4().simple())
    }

    /// Returns the place of a file; a name leads nowhere else.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(Path::new(name).file_name().unwrap_or_default())
    }

    /// Writes a file and reads it again: when this returns, it is on disk and can be read.
    pub(super) async fn write(&self, name: &str, dump: ThreadDump) -> Result<ThreadDump> {
        let failed = |reason| Error::Archive { file: name.to_owned(), reason };
        let path = self.path(name);
        let written = move || {
            put(&path, &dump)?;
            get(&path)?;
            Ok(dump)
        };
        in_background(written).await.map_err(failed)
    }

    pub(super) async fn read(&self, name: &str, thread: ThreadId) -> Result<ThreadDump> {
        let path = self.path(name);
        let shown = path.display().to_string();
        in_background(move || get(&path))
            .await
            .map_err(|reason| Error::archived(thread, &shown, reason))
    }

    /// Removes a file, also one that was not completed.
    pub(super) async fn remove(&self, name: &str) -> io::Result<()> {
        for path in [unfinished(&self.path(name)), self.path(name)] {
            match tokio::fs::remove_file(path).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl ThreadInfo {
    /// Rejects a thread whose rows are in a file.
    pub(super) fn present(self) -> Result<Self> {
        match &self.archived {
            Some(file) => Err(Error::archived(self.top(), file, "archive.dir is not set")),
            None => Ok(self),
        }
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Cause> + Send + 'static,
) -> Result<T, Cause> {
    tokio::task::spawn_blocking(work).await?
}

fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("part")
}

fn put(path: &Path, dump: &ThreadDump) -> Result<(), Cause> {
    let part = unfinished(path);
    let file = File::options().write(true).create_new(true).mode(0o600).open(&part)?;
    let mut packer = zstd::Encoder::new(file, LEVEL)?;
    packer.include_checksum(true)?;
    write_as(Form::Archive, dump, &mut packer)?;
    packer.finish()?.sync_all()?;
    fs::rename(part, path)?;
    File::open(path.parent().unwrap_or(path))?.sync_all()?;
    Ok(())
}

fn get(path: &Path) -> Result<ThreadDump, Cause> {
    let dump = read_as(Form::Archive, BufReader::new(zstd::Decoder::new(File::open(path)?)?))?;
    chain::verify_as(Form::Archive, &dump)?;
    Ok(dump)
}
