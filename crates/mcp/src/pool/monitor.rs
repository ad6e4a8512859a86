//! Monitors one open session: lists changed tools again, stops an unused server, and removes a dead one.
//!
//! It keeps neither server nor session alive while it waits, so that dropping them ends the process.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::{Peer, RoleClient, model::SubscriptionFilter, service::Subscription};
use tokio::time::timeout;

use super::server::Server;
use crate::catalog::{definitions::Definitions, listing::Listing, pages};
use crate::transport::connect::Era;
use crate::transport::open_calls::ListChanges;
use crate::transport::session::Session;
use perihelion_clock as clock;

/// How often it is looked whether the process still lives, at least.
const LOOK: Duration = Duration::from_secs(1);
/// A server's own word does not make its list be asked for more often than this.
const MOST_OFTEN: Duration = Duration::from_secs(30);
/// How long a server may take to accept a subscription.
const SUBSCRIBE: Duration = Duration::from_secs(5);
/// How long a server that did not list its tools is not asked again.
const UNHEARD: Duration = Duration::from_secs(10);
/// Shortest interval between lists of a server that always reports changes, after the first one.
const AFTER_CHANGE: Duration = Duration::from_secs(3);
/// Shortest wait, so that a moment that has passed is no busy loop.
const SHORTEST: Duration = Duration::from_millis(5);

/// Looks after a session until it ends.
pub(super) fn keep(server: &Arc<Server>, session: &Arc<Session>, era: Era) {
    let closed = server.closed.clone();
    let server = Arc::downgrade(server);
    let session = Arc::downgrade(session);
    tokio::spawn(async move {
        tokio::select! {
            () = closed.cancelled() => {}
            () = watch(server, session, era) => {}
        }
    });
}

enum CheckResult {
    Well,
    /// Its tools could not be listed; not to be asked again at once.
    Unheard,
    Ended,
}

async fn watch(server: Weak<Server>, session: Weak<Session>, era: Era) {
    let Some((changes, peer)) =
        session.upgrade().map(|session| (session.changes.clone(), session.peer.clone()))
    else {
        return;
    };
    let mut subscription = match era {
        Era::Modern => subscribe(&peer).await,
        _ => None,
    };
    // Keeps nothing of the session alive while waiting.
    drop(peer);
    let mut pause = Duration::ZERO;
    // The earliest time at which the next change is acted upon.
    let mut quiet_until = clock::monotonic();
    loop {
        let Some(wait) = server.upgrade().map(|server| server.next_look().max(pause)) else {
            return;
        };
        let has_changed = tokio::select! {
            () = changes.changed(), if subscription.is_none() => true,
            () = next(&mut subscription) => true,
            () = clock::sleep(wait) => false,
        };
        if has_changed {
            let quiet = quiet_until.saturating_duration_since(clock::monotonic());
            tokio::select! {
                () = clock::sleep(quiet) => {}
                // Further changes until then are reasons for the same check.
                () = overhear(&changes, &mut subscription) => {}
            }
            quiet_until = clock::monotonic() + AFTER_CHANGE;
        }
        let (Some(server), Some(session)) = (server.upgrade(), session.upgrade()) else { return };
        pause = match server.check(&session, has_changed).await {
            CheckResult::Well => Duration::ZERO,
            CheckResult::Unheard => UNHEARD,
            CheckResult::Ended => return,
        };
    }
}

/// Takes in further changes without end.
async fn overhear(changes: &ListChanges, subscription: &mut Option<Subscription>) {
    loop {
        tokio::select! {
            () = changes.changed(), if subscription.is_none() => {}
            () = next(subscription) => {}
        }
        // A storm leaves others their turn.
        tokio::task::yield_now().await;
    }
}

/// Subscribes to changes of a server with the newer protocol; some of these servers do not support it.
async fn subscribe(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let available = peer.peer_info()?.capabilities.tools.as_ref()?.list_changed;
    if available != Some(true) {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    timeout(SUBSCRIBE, peer.listen(filter)).await.ok()?.ok()
}

/// Returns at the next change of a subscription, and at its end; never without one.
async fn next(subscription: &mut Option<Subscription>) {
    let Some(open) = subscription else { return std::future::pending().await };
    if !matches!(open.next().await, Ok(Some(_))) {
        *subscription = None;
    }
}

impl Server {
    fn next_look(&self) -> Duration {
        let mut wait = LOOK;
        if let Some(limit) = self.config.idle_timeout {
            let idle = self.admission.idle_for().unwrap_or_default();
            wait = wait.min(limit.saturating_sub(idle));
        }
        if let Some(listing) = self.view().own_tools() {
            wait = wait.min(self.stale_in(listing));
        }
        wait.max(SHORTEST)
    }

    fn stale_in(&self, listing: &Listing) -> Duration {
        let ttl = match self.config.definitions_ttl {
            Some(ttl) => ttl,
            None => listing.definitions.ttl(&self.config).max(MOST_OFTEN),
        };
        let age = clock::now() - listing.definitions.listed_at;
        ttl.saturating_sub(age.to_std().unwrap_or_default())
    }

    async fn check(&self, session: &Arc<Session>, has_changed: bool) -> CheckResult {
        let mut link = self.link.lock().await;
        if !link.connection.is_on(session) {
            return CheckResult::Ended;
        }
        let is_lost = link.connection.is_lost();
        let limit = self.config.idle_timeout;
        let idle = self.admission.idle_for();
        let is_unused = idle.zip(limit).is_some_and(|(idle, limit)| idle >= limit);
        if is_lost || is_unused {
            let patience = if is_lost { Duration::ZERO } else { self.context.options.patience };
            self.part(&mut link, patience).await;
            tracing::debug!(server = %self.config.name, is_lost, "MCP server is no longer running");
            return CheckResult::Ended;
        }
        let opened = link.connection.opened();
        let is_stale = opened.is_some_and(|opened| self.stale_in(&opened.listing).is_zero());
        if !has_changed && !is_stale {
            return CheckResult::Well;
        }
        drop(link);
        // Calls continue during the request.
        match pages::fetch(session, &self.config).await {
            Ok(definitions) => self.list_again(session, definitions).await,
            Err(reason) => {
                tracing::debug!(server = %self.config.name, %reason, "the tool list could not be read again");
                CheckResult::Unheard
            }
        }
    }

    /// Accepts the changes of a session's tools since it was opened.
    async fn list_again(&self, session: &Arc<Session>, definitions: Definitions) -> CheckResult {
        let learnt = self.learn(definitions).await;
        let mut link = self.link.lock().await;
        match learnt {
            Ok(listing) if link.connection.listed(session, listing.clone()) => {
                self.tell(listing);
                CheckResult::Well
            }
            Err(quarantined) if link.connection.is_on(session) => {
                self.change(|view| view.fail(&quarantined));
                self.end(&mut link.connection, session, &quarantined).await;
                CheckResult::Ended
            }
            // The session after it has listed and was judged for itself.
            Ok(_) | Err(_) => CheckResult::Ended,
        }
    }
}
