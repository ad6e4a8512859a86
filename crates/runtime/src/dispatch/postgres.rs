//! Wake-up calls on Postgres: a table holds the calls, and the database notifies workers.
//!
//! A call is removed from the table before its thread is claimed. So no dead worker locks a call, and no worker without
//! capacity delays a call. The next poll makes up for a call that is lost before the claim.

use std::time::Duration;

use perihelion_database::postgres::{Connections, Listener, SILENCE, Server};
use tokio::sync::Mutex;

use super::Scope;
use perihelion_engine::checkpoint::Error;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// The channel that `wake_thread` in the database notifies.
const CHANNEL: &str = "perihelion_wake";

/// Takes the oldest call to a thread of this worker, or to a deleted one, that no other worker is taking, and returns
/// whether the thread is there; calls to other threads stay for their workers.
const TAKE: &str = "DELETE FROM wake_call WHERE thread_id =
        (SELECT call.thread_id FROM wake_call call LEFT JOIN thread ON thread.id = call.thread_id
         WHERE thread.id IS NULL OR thread.graph = ANY($1) AND thread.tenant IS DISTINCT FROM $2
         ORDER BY call.called_at LIMIT 1 FOR UPDATE OF call SKIP LOCKED)
     RETURNING thread_id, EXISTS (SELECT FROM thread WHERE thread.id = wake_call.thread_id)";

/// The wake-up calls of a database that any number of machines share.
pub(super) struct Calls {
    scope: Scope,
    server: Server,
    connections: Connections,
    /// `None` after the listening connection is lost.
    listener: Mutex<Option<Listener>>,
}

impl Calls {
    /// Reads an address, without connecting.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for an invalid address.
    pub(super) fn new(url: &str, scope: Scope) -> Result<Self, Error> {
        let server = Server::read(url, "perihelion dispatch")?;
        let connections = Connections::new(url, SILENCE)?.of_all_tenants();
        Ok(Self { scope, server, connections, listener: Mutex::default() })
    }

    /// Takes one call out of the table: its thread, and whether that is there.
    pub(super) async fn take(&self) -> Result<Option<(ThreadId, bool)>, Error> {
        let mut connection = self.connections.take().await?;
        let taken = sqlx::query_as(TAKE)
            .bind(&self.scope.graphs)
            .bind(self.scope.except_tenant.as_deref())
            .fetch_optional(&mut *connection);
        let taken = self.connections.brief(taken).await;
        if taken.is_err() {
            // The same event likely swallowed the connection that listens.
            self.listener.lock().await.take();
        }
        Ok(connection.settle(taken)?.map(|(thread, is_there)| (ThreadId(thread), is_there)))
    }

    /// Returns after a call, and after `due` at the latest.
    pub(super) async fn called(&self, due: Duration) {
        let mut listener = self.listener.lock().await;
        let Some(open) = listener.as_mut() else {
            match self.server.listen(CHANNEL).await {
                // Calls from before this connection listened are not received: the caller asks first.
                Ok(open) => *listener = Some(open),
                Err(error) => {
                    tracing::warn!(%error, "cannot listen for wake-up calls; polling for threads");
                    clock::sleep(due).await;
                }
            }
            return;
        };
        let is_open = tokio::select! {
            call = open.next() => call.is_ok(),
            () = clock::sleep(due) => true,
        };
        if !is_open {
            *listener = None;
        }
    }

    pub(super) async fn close(&self) {
        self.listener.lock().await.take();
        self.connections.close().await;
    }
}
