//! Opens a server's session when it is needed and again when it was lost, and lists its tools.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::watch;

use super::{
    Error, Pins,
    cache::Cache,
    connect::{self, Era},
    definitions::Definitions,
    listing::{self, Listing},
    menu, monitor,
    oauth::Logins,
    server::Server,
    session::Session,
};
use crate::clock;

/// Longer reasons are somebody's dump.
pub(super) const REASON_CHARS: usize = 2000;

/// What the servers of a pool share.
pub(super) struct Around {
    pub executable: Option<PathBuf>,
    pub patience: Duration,
    pub cache: Option<Cache>,
    /// Where definitions are pinned; without it every server is taken as it is.
    pub pins: Option<Arc<Pins>>,
    /// Where logins to servers are kept; without it servers that want one cannot be used.
    pub logins: Option<Logins>,
    /// Do not believe what is on disk; only write it.
    pub refresh: bool,
    /// Begin with what is pinned and not fresh any longer, and ask the server beside what goes on.
    pub refresh_beside: bool,
    /// Counts changes of what is told of the servers.
    pub changes: watch::Sender<u64>,
}

impl Around {
    /// Tells anyone who listens that something about a server changed.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// A server's connection.
#[derive(Default)]
pub(super) struct State {
    pub era: Era,
    pub session: Option<Arc<Session>>,
    /// The tools that this session listed.
    pub listing: Option<Arc<Listing>>,
    failure: Option<Error>,
}

impl State {
    /// Closes the session, if there is one; the next call opens another.
    pub(super) async fn part(&mut self, patience: Duration) {
        self.listing = None;
        if let Some(session) = self.session.take() {
            session.close(patience).await;
        }
    }
}

impl Server {
    /// Returns an open session and its tools, made again where lost, or listed again where asked.
    pub(super) async fn open(&self, relist: bool) -> Result<(Arc<Session>, Arc<Listing>), Error> {
        let seen = self.attempts.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        if self.closed.is_cancelled() {
            return Err(self.start_error("the connections were closed"));
        }
        if seen != self.attempts.load(Ordering::Acquire) {
            // Somebody tried while this one waited.
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
        }
        let opened = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(self.start_error("the connections were closed")),
            opened = self.open_locked(&mut state, relist) => opened,
        };
        state.failure = opened.as_ref().err().cloned();
        self.attempts.fetch_add(1, Ordering::Release);
        if let Err(error) = &opened {
            if !error.is_quarantine() {
                self.count_failure(error.reason());
            }
            self.cannot_be_used(error);
        }
        opened
    }

    /// Tells that the server could not be started, or is not to be called.
    pub(super) fn cannot_be_used(&self, error: &Error) {
        let reason = error.to_string();
        self.change(|view| {
            view.is_running = false;
            view.before = None;
            view.failure = Some(reason);
            if error.is_quarantine() {
                // What it was trusted to say is not what would be called.
                view.listing = None;
            }
        });
    }

    async fn open_locked(
        &self,
        state: &mut State,
        relist: bool,
    ) -> Result<(Arc<Session>, Arc<Listing>), Error> {
        if state.session.as_ref().is_some_and(|session| !session.is_open()) {
            tracing::info!(server = %self.config.name, "MCP server closed the connection; connecting again");
            // Nothing to wait for politely: its pipes are closed, but its children may live.
            state.part(Duration::ZERO).await;
        }
        let session = match &state.session {
            Some(session) => session.clone(),
            None => self.connect(state).await?,
        };
        // The monitor lists again in its own time; where there are pins, no call goes out before that.
        let relist = session.changes.take() && self.around.pins.is_some() || relist;
        if let Some(listing) = state.listing.as_ref().filter(|_| !relist) {
            return Ok((session, listing.clone()));
        }
        let learnt = match listing::fetch(&session, &self.config).await {
            Ok(definitions) => self.learn(definitions).await,
            Err(reason) => Err(self.start_error(&self.wants_login().unwrap_or(reason))),
        };
        match learnt {
            Ok(listing) => {
                state.listing = Some(listing.clone());
                Ok((session, listing))
            }
            // One that cannot list its tools, or is not to be trusted with them, is started again the next time.
            Err(error) => {
                state.part(self.around.patience).await;
                Err(error)
            }
        }
    }

    /// Starts or reaches the server, after the pause that its failures have earned it.
    ///
    /// One that is not what was pinned is neither: by then its program would have run, or have our token.
    async fn connect(&self, state: &mut State) -> Result<Arc<Session>, Error> {
        state.listing = None;
        self.admit()?;
        clock::sleep(self.pause()).await;
        let executable = self.around.executable.as_ref();
        let access = self.access.as_ref();
        let mut guessed = false;
        if state.era == Era::Unknown
            && let Some(before) = self.on_disk().await
        {
            state.era = before.era();
            guessed = state.era != Era::Unknown;
        }
        let mut connected = connect::connect(&self.config, state.era, executable, access).await;
        if guessed && connected.is_err() {
            // It may have been replaced by one that is greeted otherwise.
            connected = connect::connect(&self.config, Era::Unknown, executable, access).await;
        }
        let (session, era) = connected.map_err(|reason| {
            let reason = self.wants_login().unwrap_or(reason);
            state.era = Era::Unknown;
            self.start_error(&reason)
        })?;
        state.era = era;
        let session = Arc::new(session);
        state.session = Some(session.clone());
        self.use_now();
        if let Some(me) = self.me.upgrade() {
            monitor::keep(&me, &session, era);
        }
        Ok(session)
    }

    /// Takes over what the server says of its tools, and keeps it for the next start.
    ///
    /// What differs from the pin is kept as well, so that the next start knows of it, but shown to nobody.
    ///
    /// # Errors
    /// [`Error::Quarantined`].
    pub(super) async fn learn(&self, definitions: Definitions) -> Result<Arc<Listing>, Error> {
        if let Some(cache) = &self.around.cache {
            cache.store(&self.config, self.around.executable.as_deref(), &definitions).await;
        }
        let listing = Arc::new(Listing::of(definitions, &self.config));
        self.judge(&listing)?;
        let known = listing.clone();
        self.change(|view| {
            let before = view.listing.as_ref().map(|before| &before.definitions);
            if before.is_some_and(|before| !before.same_as(&known.definitions)) {
                tracing::info!(server = %self.config.name, "MCP server changed what it says of its tools");
            }
            view.is_running = true;
            view.was_running = true;
            view.failure = None;
            view.before = None;
            view.listing = Some(known);
        });
        Ok(listing)
    }

    /// Returns what is on disk of the server's tools, unless that is not to be believed.
    pub(super) async fn remembered(&self) -> Option<Definitions> {
        if self.around.refresh { None } else { self.on_disk().await }
    }

    async fn on_disk(&self) -> Option<Definitions> {
        let cache = self.around.cache.as_ref()?;
        cache.load(&self.config, self.around.executable.as_deref()).await
    }

    fn start_error(&self, reason: &str) -> Error {
        let reason = menu::cut(&self.config.secrets.redact(reason), REASON_CHARS);
        Error::Start { server: self.config.name.clone(), reason }
    }
}
