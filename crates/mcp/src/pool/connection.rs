//! The connection of a server: the states that it can be in, and the moves between them.
//!
//! ```text
//! closed or failed ── greeted ──> greeted ── told ──> open ── told ──> open
//!        ^                           │                  │
//!        └────────── close ──────────┴──────────────────┘
//! ```

use std::{sync::Arc, time::Duration};

use crate::catalog::listing::{Listing, Opened};
use crate::transport::{connect::Era, session::Session};
use crate::types::Error;

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
    /// A session is open, and its tools can be called.
    Open(Opened),
}

/// The connection for a caller that needs a session.
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

    fn session(&self) -> Option<&Arc<Session>> {
        match &self.0 {
            State::Closed | State::Failed(_) => None,
            State::Greeted(session) | State::Open(Opened { session, .. }) => Some(session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::listing_tests::empty as listing;
    use crate::transport::silent_tests::session;

    fn free(connection: &mut Connection) -> FreeSlot<'_> {
        match connection.place() {
            SessionSlot::Free(place) => place,
            SessionSlot::Taken(_) => panic!("a session stands"),
        }
    }

    #[tokio::test]
    async fn a_second_session_waits_until_the_first_one_is_closed() {
        let mut connection = Connection::default();
        let (session, server) = session().await;
        free(&mut connection).greeted(session.clone());
        assert!(
            matches!(connection.place(), SessionSlot::Taken(taken) if Arc::ptr_eq(&taken, &session))
        );
        assert!(connection.opened().is_none(), "nothing is called before it told its tools");
        assert!(connection.listed(&session, listing()) && connection.opened().is_some());
        assert!(matches!(connection.place(), SessionSlot::Taken(_)));
        connection.close(Duration::ZERO).await;
        assert!(!session.is_open(), "it was closed, not only forgotten");
        server.await.unwrap();
        free(&mut connection);
    }

    #[tokio::test]
    async fn tools_of_a_closed_session_are_ignored() {
        let mut connection = Connection::default();
        let (first, _one) = session().await;
        let (second, _two) = session().await;
        free(&mut connection).greeted(first.clone());
        connection.close(Duration::ZERO).await;
        assert!(!connection.listed(&first, listing()) && connection.opened().is_none());
        free(&mut connection).greeted(second.clone());
        assert!(!connection.listed(&first, listing()) && connection.opened().is_none());
        assert!(connection.is_on(&second) && !connection.is_on(&first));
    }

    #[tokio::test]
    async fn a_failure_reaches_all_waiting_callers_and_is_cleared_by_the_next_session() {
        let mut connection = Connection::default();
        let error = Error::Start { server: "x".into(), reason: "it is not there".into() };
        connection.failed(error.clone());
        assert_eq!(connection.failure(), Some(&error));
        let (session, _server) = session().await;
        free(&mut connection).greeted(session.clone());
        assert_eq!(connection.failure(), None);
        connection.failed(error);
        assert!(connection.is_on(&session), "a session that stands, stands all the same");
    }
}
