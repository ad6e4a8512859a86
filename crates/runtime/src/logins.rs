//! People's logins to MCP servers, one server at a time.

use std::time::Duration;

use super::Error;
use super::plugins::{pool_options, read};
use perihelion_mcp::{self as mcp, LoggedIn, LoggedOut, Login, Pool, ServerInfo, ToolHost as _};
use perihelion_settings::config::Settings;

pub struct LoginUnderWay {
    login: Login,
    pool: Pool,
}

#[derive(Debug)]
pub struct LoginMade {
    pub login: LoggedIn,
    /// The server's tools, or the reason why they are still missing.
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
    /// [`Error::Server`] if it expired, was refused, or cannot be stored.
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
            Err(error.into())
        }
    }
}

pub async fn log_out(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
    server: &str,
) -> Result<LoggedOut, Error> {
    let pool = only(settings, env, server)?;
    let done = pool.log_out(server).await;
    pool.close().await;
    Ok(done?)
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
