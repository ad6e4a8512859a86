//! The comparison of one server with its pin, for the person who approves it.

use super::Error;
use super::plugins::{logins, pins, read};
use perihelion_mcp::{self as mcp, Pins, Pool, PoolOptions, ServerPin, ServersFile, ToolHost as _};
use perihelion_settings::config::{PinMode, Settings};

/// A server's present definitions, and the pinned ones.
#[derive(Debug)]
pub struct Review {
    pub server: String,
    /// The differences, one per line.
    pub headings: Vec<String>,
    /// The differences line by line.
    pub text: String,
    pins: Pins,
    /// `None`: the server has no definitions to pin.
    seen: Option<ServerPin>,
}

impl Review {
    /// Returns why there is no change to approve, if so.
    pub fn nothing(&self) -> Option<&'static str> {
        match &self.seen {
            None => Some("it is a bundled server and needs no pin"),
            Some(_) if self.headings.is_empty() => Some("it matches its pin"),
            Some(_) => None,
        }
    }

    /// Returns the location of the pin.
    pub fn path(&self) -> &std::path::Path {
        self.pins.path()
    }

    /// Pins the definitions that were shown, even if the server has changed since.
    ///
    /// # Errors
    /// [`Error::Config`] when the lock file cannot be written.
    pub fn accept(self) -> Result<(), Error> {
        match self.seen {
            Some(seen) => Ok(self.pins.pin(&self.server, seen)?),
            None => Ok(()),
        }
    }
}

/// Starts one server, compares its definitions with its pin, and closes it again.
pub async fn review(
    settings: &Settings,
    env: &(dyn Fn(&str) -> Option<String> + Sync),
    server: &str,
) -> Result<Review, Error> {
    // Pins that are switched off can still be looked at and made; a damaged file is an error in any case.
    let pins = pins(settings, PinMode::Required)?;
    let mut file: ServersFile = read(&settings.servers.file, env)?;
    if let Some(one) = file.unusable.iter().find(|one| one.server == server) {
        let server = one.server.clone();
        let reason = one.reason.clone().into();
        return Err(Error::Server(mcp::Error::Start { server, reason }));
    }
    file.servers.retain(|one| one.name == server && one.enabled);
    let options = PoolOptions { logins: Some(logins()), ..PoolOptions::default() };
    let pool = Pool::new(file, options);
    let seen = pool.pin(server).await;
    pool.close().await;
    let seen = seen?;
    let changes = match &seen {
        Some(seen) => pins.changes(server, seen)?,
        None => mcp::Changes::default(),
    };
    let headings = changes.headings();
    let text = changes.text();
    Ok(Review { server: server.to_owned(), headings, text, pins, seen })
}
