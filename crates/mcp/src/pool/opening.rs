//! Opens a server's session on demand and after a loss, and lists its tools; withholds those that differ from the pin.
//!
//! The states of a connection, and the moves between them:
//!
//! ```text
//! closed or failed ── greeted ──> greeted ── listed ──> open ── listed ──> open
//!        ^                           │                    │
//!        └────── close, leave ───────┴────────────────────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{monitor, server::Server};
use crate::catalog::listing::{Listing, Opened};
use crate::configuration::Origin;
use crate::transport::connect::{self, Era};
use crate::trust::{Pins, ServerPin, Untrusted};
use crate::types::{Error, Reason, Result, text};
use crate::{
    call::outcome::REASON_CHARS, call::task::Connects, catalog::definitions::Definitions,
    catalog::pages, transport::session::Session,
};
use perihelion_clock as clock;

impl Connects for Server {
    async fn opened(&self) -> Result<Opened> {
        self.open(false).await
    }
}

impl Server {
    /// Returns an open session and its tools, made again where lost, or listed again where asked.
    pub async fn open(&self, relist: bool) -> Result<Opened> {
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
        // A server that keeps its session is only busy.
        if let Err(error) = &opened
            && link.connection.opened().is_none()
        {
            link.connection.failed(error.clone());
            self.failed_after(started.elapsed());
            if !error.is_quarantine() {
                self.count_failure(error.reason());
            }
            self.change(|view| view.fail(error));
        }
        opened
    }

    async fn open_locked(&self, link: &mut Link, relist: bool) -> Result<Opened> {
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
        let relist = session.changes.take() && self.context.options.pins.is_some() || relist;
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
                self.end(connection, &session, &error).await;
                Err(error)
            }
        }
    }

    /// Ends a session after an error, except for its calls in flight, which are of what it listed before.
    pub async fn end(&self, connection: &mut Connection, session: &Arc<Session>, error: &Error) {
        let is_in_use = session.open_calls.has_any() || self.admission.has_tasks();
        if connection.opened().is_none() || !is_in_use {
            connection.close(self.context.options.patience).await;
        } else if error.is_quarantine() {
            connection.leave(session);
        } else {
            // It is asked again before the next call that needs its tools, or by the monitor.
            session.changes.note();
        }
    }

    /// Starts or reaches the server, after the pause that its failures have earned it.
    ///
    /// A server that differs from its pin is neither started nor reached: otherwise its program would run, or have our
    /// token.
    async fn connect(&self, era: &mut Era, place: FreeSlot<'_>) -> Result<Arc<Session>> {
        self.admit()?;
        clock::sleep(self.admission.pause()).await;
        let executable = self.context.options.executable.as_ref();
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

    /// Reads the server's tools, and stores them for the next start.
    ///
    /// Definitions that differ from the pin are stored too, so that the next start knows of them, but are never shown.
    pub async fn learn(&self, definitions: Definitions) -> Result<Arc<Listing>> {
        if let Some(cache) = &self.context.cache {
            cache.store(&self.config, &definitions).await;
        }
        let before = self.view().own_tools().cloned();
        let listing = Arc::new(Listing::of(definitions, &self.config, before.as_deref()));
        self.judge(&listing)?;
        Ok(listing)
    }

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

    /// Returns what would be pinned of the server now; `None` for a bundled one, which is this program itself.
    pub async fn pin(&self) -> Result<Option<ServerPin>> {
        let opened = self.open(true).await?;
        Ok((!self.is_bundled()).then(|| self.pin_of(&opened.listing, &self.config.origin)))
    }

    pub fn judge(&self, listing: &Listing) -> Result<()> {
        self.judge_as_of(listing, &self.config.origin)
    }

    /// Returns whether the server can be started or reached to list its tools.
    pub fn admit(&self) -> Result<()> {
        let Some(pins) = self.pins() else { return Ok(()) };
        let admitted = pins.admit(&self.config.name, &self.config.origin);
        admitted.map_err(|error| self.quarantined(error))
    }

    /// Compares the definitions of another server under this name with the pin.
    pub fn judge_as_of(&self, listing: &Listing, origin: &Origin) -> Result<()> {
        let Some(pins) = self.pins() else { return Ok(()) };
        let is_off = |tool: &str| self.config.tools.refusal(tool).is_some();
        let seen = self.pin_of(listing, origin);
        pins.judge(&self.config.name, &seen, is_off).map_err(|error| self.quarantined(error))
    }

    /// Returns whether stored tools match a pin, or need none.
    pub fn is_vouched_for(&self) -> bool {
        self.is_bundled() || self.pins().is_some_and(|pins| pins.has(&self.config.name))
    }

    fn pins(&self) -> Option<&Pins> {
        self.context.options.pins.as_deref().filter(|_| !self.is_bundled())
    }

    fn quarantined(&self, error: Untrusted) -> Error {
        let reason = Reason::of(error, |words| text::cut(words, REASON_CHARS));
        Error::Quarantined { server: self.config.name.clone(), reason }
    }

    pub fn is_bundled(&self) -> bool {
        self.config.own_program(self.context.options.executable.as_deref()).is_some()
    }

    fn pin_of(&self, listing: &Listing, origin: &Origin) -> ServerPin {
        let info = &listing.info;
        // Whatever of it can come into the menu.
        let words = listing.definitions.own_words().unwrap_or_default();
        ServerPin::new(origin, &info.server_version, words, &info.tools, &self.config.secrets)
    }
}

/// A server's connection, and how the server wants to be greeted, which is known for longer.
#[derive(Default)]
pub(super) struct Link {
    pub era: Era,
    pub connection: Connection,
}

/// A server's connection; its state is changed by its moves alone.
#[derive(Default)]
pub(super) struct Connection(State);

#[derive(Default)]
enum State {
    /// There is no session, and no failure: the next call opens one.
    #[default]
    Closed,
    /// The last attempt to open one failed, for all who waited for it; the next call tries again.
    Failed(Error),
    /// A session is open, and has not listed its tools.
    Greeted(Arc<Session>),
    Open(Opened),
}

pub(super) enum SessionSlot<'a> {
    Taken(Arc<Session>),
    Free(FreeSlot<'a>),
}

/// The place of a session: its holder can open one, and no second one can be opened in parallel.
pub(super) struct FreeSlot<'a>(&'a mut State);

impl FreeSlot<'_> {
    pub fn greeted(self, session: Arc<Session>) {
        *self.0 = State::Greeted(session);
    }
}

impl Connection {
    pub fn place(&mut self) -> SessionSlot<'_> {
        match self.session() {
            Some(session) => SessionSlot::Taken(session.clone()),
            None => SessionSlot::Free(FreeSlot(&mut self.0)),
        }
    }

    pub fn opened(&self) -> Option<&Opened> {
        match &self.0 {
            State::Open(opened) => Some(opened),
            State::Closed | State::Failed(_) | State::Greeted(_) => None,
        }
    }

    pub fn failure(&self) -> Option<&Error> {
        match &self.0 {
            State::Failed(error) => Some(error),
            State::Closed | State::Greeted(_) | State::Open(_) => None,
        }
    }

    pub fn is_on(&self, session: &Arc<Session>) -> bool {
        self.session().is_some_and(|current| Arc::ptr_eq(current, session))
    }

    pub fn is_lost(&self) -> bool {
        self.session().is_some_and(|session| !session.is_open())
    }

    /// Accepts the tools that a session listed, unless the session is closed by now.
    ///
    /// Returns whether it stands.
    pub fn listed(&mut self, session: &Arc<Session>, listing: Arc<Listing>) -> bool {
        let is_current = self.is_on(session);
        if is_current {
            self.0 = State::Open(Opened { session: session.clone(), listing });
        }
        is_current
    }

    /// Notes why an attempt failed; an open session stays open.
    pub fn failed(&mut self, error: Error) {
        if self.session().is_none() {
            self.0 = State::Failed(error);
        }
    }

    /// Closes the session, if there is one; the next call opens another.
    pub async fn close(&mut self, patience: Duration) {
        let Some(session) = self.session().cloned() else { return };
        self.0 = State::Closed;
        session.close(patience).await;
    }

    /// Leaves a session to its calls in flight; the last of them ends it.
    pub fn leave(&mut self, session: &Arc<Session>) {
        if self.is_on(session) {
            self.0 = State::Closed;
        }
    }

    fn session(&self) -> Option<&Arc<Session>> {
        match &self.0 {
            State::Closed | State::Failed(_) => None,
            State::Greeted(session) | State::Open(Opened { session, .. }) => Some(session),
        }
    }
}
