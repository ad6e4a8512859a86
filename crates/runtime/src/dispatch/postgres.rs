//! Dispatch on Postgres: a table holds the wake-up calls, and the database notifies workers of new ones.
//!
//! A call is taken out of the table before its thread is claimed, and not kept for as long as the thread
//! runs. So no call is ever locked by a dead worker, and a worker that has no room holds none back from
//! the others; a call that is lost before the claim is made up for by the next look.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use perihelion_database::postgres::{Connections, Listener, SILENCE, Server};
use tokio::sync::Mutex;

use super::look::{Look, Wake};
use super::{Dispatcher, Scope};
use perihelion_engine::checkpoint::{Error, Store};
use perihelion_engine::clock;
use perihelion_engine::failpoint::{Point, wrap};
use perihelion_engine::ids::ThreadId;

/// The channel that `wake_thread` in the database notifies.
const CHANNEL: &str = "perihelion_wake";

/// Takes the oldest call that no other worker is taking, and returns whether its thread is one of this worker's.
const TAKE: &str = "WITH taken AS (
        DELETE FROM wake_call WHERE thread_id =
            (SELECT thread_id FROM wake_call ORDER BY called_at LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING thread_id
     )
     SELECT taken.thread_id, coalesce(thread.graph = $1 AND thread.tenant IS DISTINCT FROM $2, false)
     FROM taken LEFT JOIN thread ON thread.id = taken.thread_id";

/// How often workers look for threads whose lease has run out, whose holder is dead, or whose call was lost.
///
/// A thread is taken over within its lease and this long.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A call that was not heard within this time counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(1);

/// Dispatch for a database that any number of machines share.
pub struct Postgres {
    look: Look,
    scope: Scope,
    server: Server,
    connections: Connections,
    /// None when the connection that listened is gone.
    calls: Mutex<Option<Listener>>,
}

impl Postgres {
    /// Reads an address and connects to nothing yet.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for an address that cannot be read.
    pub fn new(url: &str, store: Arc<dyn Store>, scope: Scope) -> Result<Self, Error> {
        let server = Server::read(url, "perihelion dispatch")?;
        let connections = Connections::new(url, SILENCE)?.of_all_tenants();
        let queued_for = if scope.thorough { Duration::ZERO } else { LOST_AFTER };
        let look = Look::new(store, scope.clone(), LOOK_EVERY, queued_for);
        Ok(Self { look, scope, server, connections, calls: Mutex::default() })
    }

    /// Takes one call out of the table.
    async fn take(&self) -> Result<Option<(ThreadId, bool)>, Error> {
        let mut connection = self.connections.take().await?;
        let taken = sqlx::query_as(TAKE)
            .bind(&self.scope.graph)
            .bind(self.scope.except_tenant.as_deref())
            .fetch_optional(&mut *connection);
        let taken = self.connections.brief(taken).await;
        if taken.is_err() {
            // The same event likely swallowed the connection that listens.
            self.calls.lock().await.take();
        }
        Ok(connection.settle(taken)?.map(|(thread, is_wanted)| (ThreadId(thread), is_wanted)))
    }
}

#[async_trait]
impl Dispatcher for Postgres {
    async fn next(&self) -> Result<Option<Wake>, Error> {
        // Looking first: on a busy queue a thread without a caller is not to wait for the last call.
        if let Some(wake) = self.look.next().await? {
            return Ok(Some(wake));
        }
        while let Some((thread, is_wanted)) = wrap(Point::QueueTake, self.take()).await? {
            if is_wanted && let Some(wake) = self.look.wake(thread) {
                return Ok(Some(wake));
            }
        }
        Ok(None)
    }

    async fn called(&self) {
        let mut calls = self.calls.lock().await;
        let Some(listener) = calls.as_mut() else {
            match self.server.listen(CHANNEL).await {
                // Calls from before this connection listened are not heard: the caller asks first.
                Ok(listener) => *calls = Some(listener),
                Err(error) => {
                    tracing::warn!(%error, "cannot listen for wake-up calls; polling for threads");
                    clock::sleep(self.look.until_due()).await;
                }
            }
            return;
        };
        let is_open = tokio::select! {
            call = listener.next() => call.is_ok(),
            () = clock::sleep(self.look.until_due()) => true,
        };
        if !is_open {
            *calls = None;
        }
    }

    fn set_aside(&self, wake: &Wake, pause: Duration) {
        self.look.set_aside(wake, pause);
    }

    async fn close(&self) {
        self.calls.lock().await.take();
        self.connections.close().await;
    }
}
