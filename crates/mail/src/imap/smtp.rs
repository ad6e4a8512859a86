//! Hands a message over to the outgoing server.

use std::time::Duration;

use lettre::address::Envelope;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use secrecy::ExposeSecret;

use super::connection::{unreachable, within};
use crate::account::{GOODBYE, LIMIT};
use crate::{Account, Endpoint, Error, Result, Security};

/// Longest time that handing over takes: RFC 5321 grants the server this long after the last byte.
const HAND_OVER: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 600 });

/// Sends a message; only [`Error::Refused`] says that it did not leave.
pub async fn hand_over(
    mut connection: AsyncSmtpConnection,
    endpoint: &Endpoint,
    envelope: &Envelope,
    bytes: &[u8],
) -> Result<()> {
    let sent = tokio::time::timeout(HAND_OVER, connection.send(envelope, bytes)).await;
    match sent.map_err(|_| Error::Timeout(HAND_OVER.as_secs()))? {
        Ok(_) => {
            quit(connection).await;
            Ok(())
        }
        // A refused message did not leave; anything else may have.
        Err(error) if is_refusal(&error) => Err(Error::Refused(error.to_string())),
        Err(error) => Err(unreachable(endpoint, error)),
    }
}

pub async fn quit(mut connection: AsyncSmtpConnection) {
    let _ = tokio::time::timeout(GOODBYE, connection.quit()).await;
}

/// Connects and logs in. A server of this machine without a login gets no credentials.
pub async fn connect(endpoint: &Endpoint, account: &Account) -> Result<AsyncSmtpConnection> {
    within(log_in(endpoint, account)).await
}

async fn log_in(endpoint: &Endpoint, account: &Account) -> Result<AsyncSmtpConnection> {
    let lost = |error: SmtpError| unreachable(endpoint, error);
    let tls = || TlsParameters::new(endpoint.host.clone()).map_err(lost);
    let wrapper = match endpoint.security {
        Security::Tls => Some(tls()?),
        Security::Plain if !endpoint.is_local() => {
            return Err(Error::Unprotected(endpoint.to_string()));
        }
        Security::StartTls | Security::Plain => None,
    };
    let server = (endpoint.host.trim_matches(['[', ']']), endpoint.port);
    let hello = ClientId::default();
    let mut connection =
        AsyncSmtpConnection::connect_tokio1(server, Some(LIMIT), &hello, wrapper, None)
            .await
            .map_err(lost)?;
    if endpoint.security == Security::StartTls {
        connection.starttls(tls()?, &hello).await.map_err(lost)?;
    }
    let asks = connection.server_info().get_auth_mechanism(DEFAULT_MECHANISMS).is_some();
    if !asks && endpoint.is_local() {
        return Ok(connection);
    }
    let credentials =
        Credentials::new(account.username.clone(), account.password.expose_secret().to_owned());
    match connection.auth(DEFAULT_MECHANISMS, &credentials).await {
        Ok(_) => Ok(connection),
        // The server's answer to a login may repeat it.
        Err(error) if is_refusal(&error) => Err(Error::Login),
        Err(error) => Err(lost(error)),
    }
}

/// Returns whether the server said no, or the client did before its first command.
fn is_refusal(error: &SmtpError) -> bool {
    error.is_permanent() || error.is_transient() || error.is_client()
}

#[cfg(test)]
mod tests {
    use super::super::tests::server;
    use super::*;
    use crate::compose::address;

    async fn connected(endpoint: &Endpoint) -> Result<AsyncSmtpConnection> {
        let password = "p".to_owned().into();
        let account = Account { username: "bo".into(), password, from: "bo@b.test".into() };
        connect(endpoint, &account).await
    }

    async fn sent(endpoint: &Endpoint, to: &str) -> Result<()> {
        let connection = connected(endpoint).await.unwrap();
        let to = Envelope::new(Some(address("bo@b.test")?), vec![address(to)?]).unwrap();
        let sending = hand_over(connection, endpoint, &to, b"Subject: s\r\n\r\nt\r\n");
        tokio::time::timeout(HAND_OVER * 2, sending).await.expect("sending ends")
    }

    #[tokio::test]
    async fn a_server_that_never_greets_is_given_up() {
        let silent = server(&[]).await;
        let ended = tokio::time::timeout(LIMIT * 2, connected(&silent)).await;
        assert!(matches!(ended.expect("connecting ends"), Err(Error::Timeout(1))));
    }

    #[tokio::test]
    async fn a_server_that_falls_silent_leaves_an_unknown_outcome() {
        let silent = server(&["220 test\r\n", "250 test\r\n", "250 from\r\n"]).await;
        let ended = sent(&silent, "ann@a.test").await;
        assert!(matches!(ended, Err(Error::Timeout(1))), "{ended:?}");
    }

    #[tokio::test]
    async fn an_address_that_the_server_cannot_take_is_refused_before_it_is_sent() {
        let old = server(&["220 test\r\n", "250 test\r\n"]).await;
        let ended = sent(&old, "änn@a.test").await;
        assert!(matches!(ended, Err(Error::Refused(_))), "{ended:?}");
    }
}
