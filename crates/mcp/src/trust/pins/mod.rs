//! Pins: the definitions of each server when it was trusted, and the quarantine of servers that changed.
//!
//! Enter at [`Pins`], which stores `mcp-servers.lock` next to the servers file. Invariant: with pins, no definition
//! reaches a model that differs from its pin, and no server is started or reached that was not pinned. Deliberately
//! absent: judging the content of a definition, which is up to the person who approves it.

mod changes;
mod pin;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::configuration::Origin;
use parking_lot::Mutex;
use perihelion_settings::config::{Error, PinMode};

pub use changes::{Change, Changes};
use pin::LockFile;
pub use pin::{ServerPin, ToolPin};

#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    mode: PinMode,
    /// Pins that could not be written; they apply while this process lives.
    unwritten: Mutex<BTreeMap<String, ServerPin>>,
    /// The lock file as it was checked last, with its text.
    checked: Mutex<Option<(Option<String>, Arc<LockFile>)>>,
}

impl Pins {
    /// Opens the pins of a servers file: `mcp-servers.toml` has its pins in `mcp-servers.lock`.
    ///
    /// # Errors
    /// [`Error`] if the lock file cannot be read, or if its hashes do not match its content.
    pub fn beside(servers_file: &Path, mode: PinMode) -> Result<Self, Error> {
        Self::at(servers_file.with_extension("lock"), mode)
    }

    /// Opens the pins in a file, which is made when the first server is pinned.
    pub fn at(path: PathBuf, mode: PinMode) -> Result<Self, Error> {
        let pins = Self { path, mode, unwritten: Mutex::default(), checked: Mutex::default() };
        if mode != PinMode::Off {
            pins.load()?;
        }
        Ok(pins)
    }

    /// Reads the lock file, and checks it if it changed since the last check: it contains the definitions of all
    /// servers, and each server needs it.
    fn load(&self) -> Result<Arc<LockFile>, Error> {
        let text = LockFile::read(&self.path)?;
        let mut checked = self.checked.lock();
        if let Some((_, file)) = checked.as_ref().filter(|(before, _)| *before == text) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(LockFile::parse(&self.path, text.as_deref())?);
        *checked = Some((text, Arc::clone(&file)));
        Ok(file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a server can be started or reached at all, before its definitions are known: its pin matches the
    /// servers file, or it needs none.
    pub(crate) fn admit(&self, server: &str, origin: &Origin) -> Result<(), Untrusted> {
        let Some(pinned) = self.expected(server)? else { return Ok(()) };
        let moved = Changes(pinned.moved(&origin.source, Some(&origin.setting), None));
        if moved.is_empty() { Ok(()) } else { Err(Untrusted::changed(server, &moved)) }
    }

    /// Returns the pin that a server must match; an error if it has none and needs one.
    fn expected(&self, server: &str) -> Result<Option<ServerPin>, Untrusted> {
        let pinned = self.pinned(server)?;
        if pinned.is_none() && self.mode == PinMode::Required {
            return Err(Untrusted::Unapproved(server.to_owned()));
        }
        Ok(pinned)
    }

    fn pinned(&self, server: &str) -> Result<Option<ServerPin>, Error> {
        if self.mode == PinMode::Off {
            return Ok(None);
        }
        let known = self.load()?;
        let unwritten = self.unwritten.lock();
        Ok(known.servers.get(server).or_else(|| unwritten.get(server)).cloned())
    }

    pub(crate) fn has(&self, server: &str) -> bool {
        matches!(self.pinned(server), Ok(Some(_)))
    }

    /// Compares a server's definitions with its pin; an unknown server is pinned if the mode permits it.
    ///
    /// A tool that the operator switched off is not missed. The file is read again each time, so that what another process approved counts here.
    pub(crate) fn judge(
        &self,
        server: &str,
        seen: &ServerPin,
        is_switched_off: impl Fn(&str) -> bool,
    ) -> Result<(), Untrusted> {
        if self.mode == PinMode::Off {
            return Ok(());
        }
        let Some(pinned) = self.expected(server)? else {
            if let Err(error) = self.pin(server, seen.clone()) {
                tracing::warn!(
                    server, path = %self.path.display(), %error,
                    "MCP definitions are pinned for this process only: the lock file cannot be written; name another place with trust.pins_file"
                );
                self.unwritten.lock().insert(server.to_owned(), seen.clone());
            }
            return Ok(());
        };
        let mut available = pinned.clone();
        available.tools.retain(|tool, _| !is_switched_off(tool));
        let changes = Changes::between(Some(&available), seen);
        if !changes.is_empty() {
            return Err(Untrusted::changed(server, &changes));
        }
        if let Some(whole) = pinned.completed(seen)
            && let Err(error) = self.pin(server, whole)
        {
            tracing::debug!(server, %error, "the pin of an older version stays as it is");
        }
        Ok(())
    }

    pub fn changes(&self, server: &str, seen: &ServerPin) -> Result<Changes, Error> {
        Ok(Changes::between(self.load()?.servers.get(server), seen))
    }

    /// Pins a server's definitions, replacing its earlier pin.
    ///
    /// # Errors
    /// [`Error`] when the lock file cannot be read or written; it is replaced whole or not at all.
    pub fn pin(&self, server: &str, seen: ServerPin) -> Result<(), Error> {
        let _turn = LockFile::turn(&self.path)?;
        let mut file = (*self.load()?).clone();
        file.servers.insert(server.to_owned(), seen);
        let text = file.write(&self.path)?;
        let mut checked = self.checked.lock();
        *checked = Some((Some(text), Arc::new(file)));
        Ok(())
    }
}

/// Why a server is not started, or its definitions are not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untrusted {
    #[error(
        "it differs from its pin: {changes}; review it with `perihelion agents approve {server} --dry-run`, and accept \
         it without --dry-run"
    )]
    Changed { server: String, changes: String },
    #[error(
        "it is not approved yet; review it with `perihelion agents approve {0} --dry-run`, and accept it without \
         --dry-run"
    )]
    Unapproved(String),
    #[error(transparent)]
    Pins(#[from] Error),
}

impl Untrusted {
    fn changed(server: &str, changes: &Changes) -> Self {
        Self::Changed { server: server.to_owned(), changes: changes.summary() }
    }
}
