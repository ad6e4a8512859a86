//! Finds the tools of a server: known, on disk, or by asking it; performs logins and logouts.

use std::sync::Arc;

use super::server::Server;
use crate::transport::oauth::{Access, LoggedOut, Login};
use crate::types::{Error, Result, ServerInfo};
use crate::{catalog::definitions::Definitions, catalog::listing::Listing};
use perihelion_clock as clock;

impl Server {
    /// Lists the server's tools again, connecting first where needed.
    pub async fn scan(&self) -> Result<ServerInfo> {
        let opened = self.open(true).await?;
        // Somebody looked, and it answers: calls are let through again.
        self.admission.succeeded();
        Ok(opened.listing.info.clone())
    }

    /// Returns the server's tools as they are known, here or on disk, while they are fresh; else scans.
    ///
    /// A required server is scanned unless it was in this process: whether it starts is the point.
    pub async fn look(&self) -> Result<ServerInfo> {
        if let Some(access) = &self.access {
            access.look().await;
        }
        let is_fresh =
            |listing: &&Arc<Listing>| listing.definitions.is_fresh(&self.config, clock::now());
        let shown = self.view().own_tools().cloned();
        if let Some(listing) = shown.as_ref().filter(is_fresh)
            && self.judge(listing).is_ok()
        {
            return Ok(listing.info.clone());
        }
        if !self.config.required
            && !self.context.options.refresh
            && let Some(definitions) = self.on_disk().await
        {
            let listing = Arc::new(Listing::of(definitions, &self.config, shown.as_deref()));
            // Of what differs from its pin the server itself is asked: it may have been fixed since.
            let is_as_pinned = self.judge(&listing).is_ok();
            let is_fresh = is_fresh(&&listing);
            // No call is sent before the server has listed the same tools again.
            let may_be_old = self.context.options.refresh_beside && self.is_vouched_for();
            if is_as_pinned && (is_fresh || may_be_old) {
                self.change(|view| view.remember(listing.clone()));
                if !is_fresh {
                    self.refresh();
                }
                return Ok(listing.info.clone());
            }
        }
        self.scan().await
    }

    /// Asks the server for its tools while everything else continues; ends with its start-up timeout, or when the pool is closed.
    fn refresh(&self) {
        let Some(me) = self.me.upgrade() else { return };
        tokio::spawn(async move {
            if let Err(error) = me.scan().await
                && !me.closed.is_cancelled()
            {
                tracing::warn!(server = %me.config.name, %error, "MCP server is not as it was known");
            }
        });
    }

    /// Takes over the tools of the server that it replaces, so all agents stay available.
    ///
    /// If it is the same server, its tools are known; otherwise they only appear in the catalog until it is asked.
    pub fn succeed(&self, old: &Self) {
        let Some(known) = old.view().shown().cloned() else { return };
        let definitions = known.definitions.clone();
        let listing = Arc::new(Listing::of(definitions, &self.config, Some(&known)));
        // The changed table may let more be seen of it than was pinned.
        if self.judge_as_of(&listing, &old.config.origin).is_err() {
            return;
        }
        let mut view = self.view();
        if self.config.fingerprint == old.config.fingerprint {
            view.remember(listing)
        } else {
            view.stand_in(listing)
        }
    }

    pub async fn on_disk(&self) -> Option<Definitions> {
        self.context.cache.as_ref()?.load(&self.config).await
    }

    /// Begins a login, after asking the server for its requirements if they are unknown.
    pub async fn log_in(&self) -> Result<Login> {
        let access = self.accessible()?;
        if access.failure().is_none() {
            // What it offers without a login is no reason not to log in.
            let _ = self.scan().await;
        }
        let login = Login::begin(access.clone()).await?;
        // Somebody is at it: the next call is to be tried.
        self.admission.succeeded();
        Ok(login)
    }

    /// Forgets the login, and closes the connection that it made.
    pub async fn log_out(&self) -> Result<LoggedOut> {
        let done = self.accessible()?.log_out().await?;
        self.part(&mut *self.link.lock().await, self.context.options.patience).await;
        if let Some(cache) = &self.context.cache {
            cache.remove(&self.config).await;
        }
        Ok(done)
    }

    fn accessible(&self) -> Result<&Arc<Access>> {
        self.access.as_ref().ok_or_else(|| Error::Login {
            server: self.config.name.clone(),
            reason: "only a server with `url` has one, and only if no token is given with \
                     bearer_token_env_var or in a header"
                .into(),
        })
    }
}
