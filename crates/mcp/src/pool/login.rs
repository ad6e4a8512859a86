//! Logs a person in to one server, and out of it.

use std::sync::Arc;

use super::server::Server;
use crate::transport::oauth::{Access, LoggedOut, Login};
use crate::types::Error;

impl Server {
    /// Begins a login, asking the server first what it wants, unless it has said so.
    pub async fn log_in(&self) -> Result<Login, Error> {
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
    pub async fn log_out(&self) -> Result<LoggedOut, Error> {
        let done = self.accessible()?.log_out().await?;
        self.part(&mut *self.link.lock().await, self.context.patience).await;
        if let Some(cache) = &self.context.cache {
            cache.remove(&self.config, self.context.executable.as_deref()).await;
        }
        Ok(done)
    }

    fn accessible(&self) -> Result<&Arc<Access>, Error> {
        self.access.as_ref().ok_or_else(|| Error::Login {
            server: self.config.name.clone(),
            reason: "only a server with `url` has one, and only if no token is given with \
                     bearer_token_env_var or in a header"
                .into(),
        })
    }
}
