//! People's logins to MCP servers, one server at a time.

use std::time::Duration;

use super::Error;
use super::plugins::{pool_options, read};
use perihelion_mcp::{self as mcp, LoggedIn, LoggedOut, Login, Pool, ServerInfo, ToolHost as _};
use perihelion_settings::config::Settings;

/// A login that waits for a person to visit an address.
pub struct LoginUnderWay {
    login: Login,
    pool: Pool,
}

/// A login that was made, and what the server then offered.
#[derive(Debug)]
pub struct LoginMade {
    pub login: LoggedIn,
    /// The server's tools, or why it still does not tell them.
    pub server: Result<ServerInfo, mcp::Error>,
}

impl LoginUnderWay {
    /// Returns the address that the person must visit with a browser on this machine.
    pub fn address(&self) -> &str {
        self.login.address()
    }

    /// Waits for the person, keeps the login, and asks the server for its tools with it.
    ///
    /// # Errors
    /// [`Error::Server`] when nobody came in time, the login was refused, or it cannot be kept.
    pub async fn finish(self, patience: Duration) -> Result<LoginMade, Error> {
        let Self { login, pool } = self;
        let made = match login.finish(patience).await {
            Ok(login) => {
                let scanned = pool.rescan().await.pop();
                let nobody = || Err(mcp::Error::UnknownServer(login.server.clone()));
                let server = scanned.map_or_else(nobody, |status| status.outcome);
                Ok(LoginMade { login, server })
            }
            Err(error) => Err(Error::Server(error)),
        };
        pool.close().await;
        made
    }
}

/// Begins a login to one server.
///
/// # Errors
/// [`Error`] when the servers file cannot be used, or nobody can log in to the server.
pub async fn log_in(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
    server: &str,
) -> Result<LoginUnderWay, Error> {
    let pool = only(settings, env, server)?;
    match pool.log_in(server).await {
        Ok(login) => Ok(LoginUnderWay { login, pool }),
        Err(error) => {
            pool.close().await;
            Err(of(error))
        }
    }
}

/// Forgets the login to one server.
///
/// # Errors
/// [`Error`] when the servers file cannot be used, or the login cannot be forgotten.
pub async fn log_out(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
    server: &str,
) -> Result<LoggedOut, Error> {
    let pool = only(settings, env, server)?;
    let done = pool.log_out(server).await;
    pool.close().await;
    done.map_err(of)
}

fn only(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
    server: &str,
) -> Result<Pool, Error> {
    let mut file = read(&settings.servers.file, env)?;
    file.servers.retain(|one| one.name == server && one.enabled);
    Ok(Pool::new(file, pool_options(settings, false)?))
}

fn of(error: mcp::Error) -> Error {
    match error {
        mcp::Error::UnknownServer(name) => Error::NoServer(name),
        other => Error::Server(other),
    }
}
