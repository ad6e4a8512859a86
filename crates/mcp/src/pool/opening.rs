//! Opens a server's session when it is needed and again when it was lost, and lists its tools.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::connection::{FreeSlot, Link, SessionSlot};
use super::monitor;
use super::server::Server;
use crate::call::task::Connects;
use crate::catalog::{definitions::Definitions, listing::Listing, opened::Opened, pages};
use crate::transport::{
    connect::{self, Era},
    session::Session,
};
use crate::types::{Error, Reason, text};
use perihelion_engine::clock;

/// Longer reasons are somebody's dump.
pub(super) const REASON_CHARS: usize = 2000;

impl Connects for Server {
    async fn opened(&self) -> Result<Opened, Error> {
        self.open(false).await
    }
}

impl Server {
    /// Returns an open session and its tools, made again where lost, or listed again where asked.
    pub async fn open(&self, relist: bool) -> Result<Opened, Error> {
        let seen = self.attempts.load(Ordering::Acquire);
        let mut link = self.link.lock().await;
        if self.closed.is_cancelled() {
            return Err(self.closed_error());
        }
        if seen != self.attempts.load(Ordering::Acquire) {
            // Somebody tried while this one waited.
            if let Some(failure) = link.connection.failure() {
                return Err(failure.clone());
            }
        }
        let started = clock::monotonic();
        let opened = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(self.closed_error()),
            opened = self.open_locked(&mut link, relist) => opened,
        };
        self.attempts.fetch_add(1, Ordering::Release);
        if let Err(error) = &opened {
            link.connection.failed(error.clone());
            self.failed_after(started.elapsed());
            if !error.is_quarantine() {
                self.count_failure(error.reason());
            }
            self.change(|view| view.fail(error));
        }
        opened
    }

    async fn open_locked(&self, link: &mut Link, relist: bool) -> Result<Opened, Error> {
        if link.connection.is_lost() {
            tracing::info!(server = %self.config.name, "MCP server closed the connection; connecting again");
            // Nothing to wait for politely: its pipes are closed, but its children may live.
            link.connection.close(Duration::ZERO).await;
        }
        let Link { era, connection } = link;
        let session = match connection.place() {
            SessionSlot::Taken(session) => session,
            SessionSlot::Free(place) => self.connect(era, place).await?,
        };
        // The monitor lists again in its own time; where there are pins, no call goes out before that.
        let relist = session.changes.take() && self.context.pins.is_some() || relist;
        if let Some(opened) = connection.opened().filter(|_| !relist) {
            return Ok(opened.clone());
        }
        let learnt = match pages::fetch(&session, &self.config_to_start()).await {
            Ok(definitions) => self.learn(definitions).await,
            Err(error) => Err(self.start_failed(error)),
        };
        match learnt {
            Ok(listing) => {
                connection.listed(&session, listing.clone());
                self.tell(listing.clone());
                Ok(Opened { session, listing })
            }
            // One that cannot list its tools, or is not to be trusted with them, is started again the next time.
            Err(error) => {
                connection.close(self.context.patience).await;
                Err(error)
            }
        }
    }

    /// Starts or reaches the server, after the pause that its failures have earned it.
    ///
    /// One that is not what was pinned is neither: by then its program would have run, or have our token.
    async fn connect(&self, era: &mut Era, place: FreeSlot<'_>) -> Result<Arc<Session>, Error> {
        self.admit()?;
        clock::sleep(self.admission.pause()).await;
        let executable = self.context.executable.as_ref();
        let access = self.access.as_ref();
        let mut guessed = false;
        if *era == Era::Unknown
            && let Some(before) = self.on_disk().await
        {
            *era = before.era();
            guessed = *era != Era::Unknown;
        }
        let config = &self.config_to_start();
        let mut connected = connect::connect(config, *era, executable, access).await;
        if guessed && connected.is_err() {
            // It may have been replaced by one that is greeted otherwise.
            connected = connect::connect(config, Era::Unknown, executable, access).await;
        }
        let (session, learnt) = connected.map_err(|error| {
            *era = Era::Unknown;
            self.start_failed(error)
        })?;
        *era = learnt;
        let session = Arc::new(session);
        place.greeted(session.clone());
        self.admission.use_now();
        if let Some(me) = self.me.upgrade() {
            monitor::keep(&me, &session, learnt);
        }
        Ok(session)
    }

    /// Reads what the server says of its tools, and keeps it for the next start.
    ///
    /// What differs from the pin is kept as well, so that the next start knows of it, but shown to nobody.
    ///
    /// # Errors
    /// [`Error::Quarantined`].
    pub async fn learn(&self, definitions: Definitions) -> Result<Arc<Listing>, Error> {
        if let Some(cache) = &self.context.cache {
            cache.store(&self.config, self.context.executable.as_deref(), &definitions).await;
        }
        let before = self.view().own_tools().cloned();
        let listing = Arc::new(Listing::of(definitions, &self.config, before.as_deref()));
        self.judge(&listing)?;
        Ok(listing)
    }

    /// Tells everybody what tools the server has, which is connected.
    pub fn tell(&self, listing: Arc<Listing>) {
        self.change(|view| {
            let before = view.own_tools().map(|before| &before.definitions);
            if before.is_some_and(|before| !before.same_as(&listing.definitions)) {
                tracing::info!(server = %self.config.name, "MCP server changed its tool definitions");
            }
            view.run(listing);
        });
    }

    /// Makes the error for a start that failed, if not for want of a login.
    fn start_failed(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error {
        let clean = |words: &str| text::cut(&self.config.secrets.redact(words), REASON_CHARS);
        let reason = match self.wants_login() {
            Some(login) => clean(&login).into(),
            None => Reason::of(error, clean),
        };
        Error::Start { server: self.config.name.clone(), reason }
    }

    fn closed_error(&self) -> Error {
        let reason = "the connections were closed".into();
        Error::Start { server: self.config.name.clone(), reason }
    }
}
