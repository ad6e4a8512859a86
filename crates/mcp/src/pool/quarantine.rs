//! Holds what a server says against its pin, before anybody gets to see it.

use super::opening::REASON_CHARS;
use super::server::Server;
use crate::catalog::listing::Listing;
use crate::configuration::{Origin, Transport};
use crate::trust::{Pins, ServerPin, Untrusted};
use crate::types::{Error, Reason, text};

impl Server {
    /// Returns what would be pinned of the server now; `None` for a bundled one, which is this program itself.
    pub async fn pin(&self) -> Result<Option<ServerPin>, Error> {
        let opened = self.open(true).await?;
        Ok((!self.is_bundled()).then(|| self.pin_of(&opened.listing, &self.config.origin)))
    }

    /// Compares a listing with the server's pin: a fresh one, or one that is remembered.
    pub fn judge(&self, listing: &Listing) -> Result<(), Error> {
        self.judge_as_of(listing, &self.config.origin)
    }

    /// Tells whether the server may be started or reached, to hear what it says.
    pub fn admit(&self) -> Result<(), Error> {
        let Some(pins) = self.pins() else { return Ok(()) };
        let admitted = pins.admit(&self.config.name, &self.config.origin);
        admitted.map_err(|error| self.quarantined(error))
    }

    /// Compares what another server under this name said with the pin.
    pub fn judge_as_of(&self, listing: &Listing, origin: &Origin) -> Result<(), Error> {
        let Some(pins) = self.pins() else { return Ok(()) };
        let is_off = |tool: &str| self.config.tools.refusal(tool).is_some();
        let seen = self.pin_of(listing, origin);
        pins.judge(&self.config.name, &seen, is_off).map_err(|error| self.quarantined(error))
    }

    /// Tells whether there is a pin against which what is remembered is held, or none is needed.
    pub fn is_vouched_for(&self) -> bool {
        self.is_bundled() || self.pins().is_some_and(|pins| pins.has(&self.config.name))
    }

    fn pins(&self) -> Option<&Pins> {
        self.context.pins.as_deref().filter(|_| !self.is_bundled())
    }

    fn quarantined(&self, error: Untrusted) -> Error {
        let reason = Reason::of(error, |words| text::cut(words, REASON_CHARS));
        Error::Quarantined { server: self.config.name.clone(), reason }
    }

    pub fn is_bundled(&self) -> bool {
        let own = |command: &str| command == "perihelion" && self.context.executable.is_some();
        matches!(&self.config.transport, Transport::Stdio { command, .. } if own(command))
    }

    fn pin_of(&self, listing: &Listing, origin: &Origin) -> ServerPin {
        let info = &listing.info;
        // Whatever of it can come into the menu.
        let words = listing.definitions.own_words().unwrap_or_default();
        ServerPin::new(origin, &info.server_version, words, &info.tools, &self.config.secrets)
    }
}
