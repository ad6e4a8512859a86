//! Stores the definitions of servers on disk, so that an agent catalog can be made without starting them.
//!
//! One file per server, named by a digest of what decides which server is reached. Losing a file costs a start,
//! never more, so whatever cannot be read or written is passed over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::definitions::Definitions;
use crate::configuration::{ServerConfig, Transport};
use perihelion_sandbox::find_program;

/// The version of the files; other versions are ignored.
const FORMAT: u32 = 1;

/// Files that were not written for this long belong to unused or changed servers.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

pub(crate) struct Cache {
    directory: PathBuf,
    /// This program, of which bundled servers are a part.
    executable: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    format: u32,
    definitions: Definitions,
}

impl Cache {
    pub fn new(directory: PathBuf, executable: Option<PathBuf>) -> Self {
        Self { directory, executable }
    }

    /// Returns a server's definitions as last listed, fresh or not.
    pub async fn load(&self, config: &ServerConfig) -> Option<Definitions> {
        let bytes = tokio::fs::read(self.path(config)).await.ok()?;
        let entry: Entry = serde_json::from_slice(&bytes).ok()?;
        (entry.format == FORMAT).then_some(entry.definitions)
    }

    pub async fn store(&self, config: &ServerConfig, definitions: &Definitions) {
        let path = self.path(config);
        let entry = Entry { format: FORMAT, definitions: definitions.clone() };
        let written = async {
            let bytes = serde_json::to_vec(&entry)?;
            tokio::fs::create_dir_all(&self.directory).await?;
            // Readers see the old file or the new one, and writers in other processes do not mix with this one.
            let name = format!("{}.new", uuid::Uuid::new_v4());
            let fresh = self.directory.join(name);
            tokio::fs::write(&fresh, bytes).await?;
            tokio::fs::rename(&fresh, &path).await?;
            self.clear().await
        };
        let written: std::io::Result<()> = written.await;
        if let Err(error) = written {
            let path = path.display();
            tracing::debug!(server = %config.name, %path, %error, "definitions were not kept");
        }
    }

    pub async fn remove(&self, config: &ServerConfig) {
        // A missing file needs no removal.
        let _ = tokio::fs::remove_file(self.path(config)).await;
    }

    /// Removes files that were not written for long.
    async fn clear(&self) -> std::io::Result<()> {
        let mut files = tokio::fs::read_dir(&self.directory).await?;
        while let Some(file) = files.next_entry().await? {
            let written = file.metadata().await?.modified()?;
            if written.elapsed().is_ok_and(|age| age > KEPT) {
                tokio::fs::remove_file(file.path()).await?;
            }
        }
        Ok(())
    }

    fn path(&self, config: &ServerConfig) -> PathBuf {
        let mut digest = blake3::Hasher::new();
        digest.update(config.fingerprint.as_bytes());
        if let Transport::Stdio { command, env, cwd, .. } = &config.transport {
            let here = std::env::current_dir().unwrap_or_default();
            let place = cwd.as_ref().map_or(here.clone(), |cwd| here.join(cwd));
            digest.update(place.as_os_str().as_encoded_bytes());
            let path = env.get("PATH").map(AsRef::as_ref).unwrap_or_default();
            let program = match config.own_program(self.executable.as_deref()) {
                Some(own) => Some(own.to_owned()),
                None => find_program(command.as_ref(), path, &place),
            };
            // A program that was replaced may have other tools.
            if let Some(stamp) = program.and_then(|program| stamp(&program)) {
                digest.update(stamp.as_bytes());
            }
        }
        let digest = digest.finalize().to_hex();
        self.directory.join(format!("{}.json", digest.get(..40).unwrap_or_default()))
    }
}

fn stamp(program: &Path) -> Option<String> {
    let data = std::fs::metadata(program).ok()?;
    let changed = data.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{}\n{}\n{}", program.display(), data.len(), changed.as_nanos()))
}
