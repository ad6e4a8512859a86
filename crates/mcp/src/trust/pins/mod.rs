//! Pins: what each server said of itself when it was trusted, and the quarantine of those that say otherwise now.
//!
//! Enter at [`Pins`], which keeps `mcp-servers.lock` beside the servers file. Invariant: where pins are kept, no
//! definition reaches a model that differs from its pin, and nothing is started or reached that is not what was pinned. Deliberately absent: any judgement of what a
//! definition says; that is for the person who approves it.

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

/// The pins of a servers file.
#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    mode: PinMode,
    /// Pins that could not be written down; they hold for as long as this process lives.
    unwritten: Mutex<BTreeMap<String, ServerPin>>,
    /// The lock file as it was checked last, with its text.
    checked: Mutex<Option<(Option<String>, Arc<LockFile>)>>,
}

impl Pins {
    /// Opens the pins of a servers file: `mcp-servers.toml` has its pins in `mcp-servers.lock`.
    ///
    /// # Errors
    /// [`Error`] when there is a lock file that cannot be read, or whose hashes are not those of what it holds.
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

    /// Reads the lock file, and checks it where it is not the one that was checked last: it holds the definitions of
    /// all servers, and each of them asks for it.
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

    /// Returns where the pins stand.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether a server may be started or reached at all, before it learns anything: its pin is of what the
    /// servers file says now, or there need be none.
    pub(crate) fn admit(&self, server: &str, origin: &Origin) -> Result<(), Untrusted> {
        if self.mode == PinMode::Off {
            return Ok(());
        }
        match (self.pinned(server)?, self.mode) {
            (Some(pinned), _) => {
                let moved = Changes(pinned.moved(&origin.source, Some(&origin.setting), None));
                if moved.is_empty() { Ok(()) } else { Err(Untrusted::changed(server, &moved)) }
            }
            (None, PinMode::Required) => Err(Untrusted::Unapproved(server.to_owned())),
            (None, _) => Ok(()),
        }
    }

    /// Returns a server's pin, read again.
    fn pinned(&self, server: &str) -> Result<Option<ServerPin>, Error> {
        let known = self.load()?;
        let unwritten = self.unwritten.lock();
        Ok(known.servers.get(server).or_else(|| unwritten.get(server)).cloned())
    }

    /// Tells whether a server is pinned.
    pub(crate) fn has(&self, server: &str) -> bool {
        self.mode != PinMode::Off && matches!(self.pinned(server), Ok(Some(_)))
    }

    /// Compares what a server says with its pin; a server seen for the first time is pinned where the mode
    /// allows that.
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
        match (self.pinned(server)?, self.mode) {
            (Some(pinned), _) => {
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
            (None, PinMode::Required) => Err(Untrusted::Unapproved(server.to_owned())),
            (None, _) => {
                if let Err(error) = self.pin(server, seen.clone()) {
                    tracing::warn!(
                        server, path = %self.path.display(), %error,
                        "MCP definitions are pinned for this process only: the lock file cannot be written; name another place with trust.pins_file"
                    );
                    let mut unwritten = self.unwritten.lock();
                    unwritten.insert(server.to_owned(), seen.clone());
                }
                Ok(())
            }
        }
    }

    /// Tells how what a server says now differs from its pin.
    pub fn changes(&self, server: &str, seen: &ServerPin) -> Result<Changes, Error> {
        Ok(Changes::between(self.load()?.servers.get(server), seen))
    }

    /// Pins what a server says, in place of what was pinned before.
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
