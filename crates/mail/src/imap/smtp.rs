//! Hands a message over to the outgoing server.

use lettre::address::Envelope;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use secrecy::ExposeSecret;

use crate::account::LIMIT;
use crate::{Account, Endpoint, Error, Result, Security};

/// Sends a message; only [`Error::Refused`] says that it did not leave.
pub async fn hand_over(
    mut connection: AsyncSmtpConnection,
    endpoint: &Endpoint,
    envelope: &Envelope,
    bytes: &[u8],
) -> Result<()> {
    match connection.send(envelope, bytes).await {
        Ok(_) => {
            let _ = connection.quit().await;
            Ok(())
        }
        // What the server said no to did not leave; anything else may have.
        Err(error) if is_answer(&error) => Err(Error::Refused(error.to_string())),
        Err(error) => Err(unreachable(endpoint, &error)),
    }
}

/// Connects and logs in. A server of this machine without a login gets no credentials.
pub async fn connect(endpoint: &Endpoint, account: &Account) -> Result<AsyncSmtpConnection> {
    let lost = |error: SmtpError| unreachable(endpoint, &error);
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
        // What it says of a login may repeat it.
        Err(error) if is_answer(&error) || error.is_client() => Err(Error::Login),
        Err(error) => Err(lost(error)),
    }
}

fn is_answer(error: &SmtpError) -> bool {
    error.is_permanent() || error.is_transient()
}

fn unreachable(endpoint: &Endpoint, error: &SmtpError) -> Error {
    Error::Unreachable { server: endpoint.to_string(), reason: error.to_string().into() }
}
