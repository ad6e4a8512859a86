//! The lock file: pins as sorted JSON, one change per line, meant for version control.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::pin::ServerPin;
use perihelion_settings::config::Error;

/// The form of the file that this program writes and reads.
const VERSION: u32 = 1;

/// All pins of a servers file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockFile {
    version: u32,
    pub servers: BTreeMap<String, ServerPin>,
}

impl LockFile {
    /// Reads the file's text; none where it does not exist.
    pub fn read(path: &Path) -> Result<Option<String>, Error> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path: path.to_owned(), source }),
        }
    }

    /// Checks the file's text; without one there are no pins.
    pub fn parse(path: &Path, text: Option<&str>) -> Result<Self, Error> {
        let Some(text) = text else {
            return Ok(Self { version: VERSION, servers: BTreeMap::new() });
        };
        let file: Self = serde_json::from_str(text).map_err(|error| Error::Parse {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            message: format!("not a lock file of MCP servers: {error}"),
            hint: "; restore it from version control, or approve each server again".to_owned(),
        })?;
        if file.version != VERSION {
            let reason = format!("this program reads version {VERSION}, not: {}", file.version);
            return Err(Error::value(path, "version", reason));
        }
        for (name, pin) in &file.servers {
            if let Some(part) = pin.altered() {
                let reason = format!(
                    "the hash does not match the entry; restore the file from version control, or remove the \
                     entry and approve the server again: perihelion agents approve {name}"
                );
                return Err(Error::value(path, format!("servers.{name}.{part}"), reason));
            }
        }
        Ok(file)
    }

    /// Has other processes wait that want to change the file, where the file system has locks.
    ///
    /// Without them two first looks can lose one pin, which is then made at the next look.
    pub fn turn(path: &Path) -> Result<File, Error> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let turn = File::open(directory.unwrap_or(Path::new(".")))
            .map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let _ = turn.lock();
        Ok(turn)
    }

    /// Writes the file, which is replaced whole or not at all, and returns its text.
    pub fn write(&self, path: &Path) -> Result<String, Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let beside = path.with_extension(format!("lock.{}", uuid::Uuid::new_v4().simple()));
        let written = std::fs::write(&beside, &text).and_then(|()| std::fs::rename(&beside, path));
        written.inspect_err(|_| drop(std::fs::remove_file(&beside))).map_err(failed)?;
        Ok(text)
    }
}
