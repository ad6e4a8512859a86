//! Connections to the IMAP server.

use std::sync::Arc;

use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::session::{Imap, Stream};
use crate::account::LIMIT;
use crate::query::quoted;
use crate::{Account, Endpoint, Error, Result, Security};

pub async fn connect(endpoint: &Endpoint, account: &Account) -> Result<Imap> {
    within(log_in(endpoint, account)).await
}

pub async fn within<T>(exchange: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(LIMIT, exchange).await.map_err(|_| Error::Timeout(LIMIT.as_secs()))?
}

async fn log_in(endpoint: &Endpoint, account: &Account) -> Result<Imap> {
    if endpoint.security == Security::Plain && !endpoint.is_local() {
        return Err(Error::Unprotected(endpoint.to_string()));
    }
    let address = (endpoint.host.trim_matches(['[', ']']), endpoint.port);
    let stream = TcpStream::connect(address).await.map_err(|error| unreachable(endpoint, error))?;
    let mut session = match endpoint.security {
        Security::Plain => Imap::begin(Box::new(stream) as Box<dyn Stream>).await?,
        Security::Tls => {
            Imap::begin(Box::new(encrypted(endpoint, stream).await?) as Box<dyn Stream>).await?
        }
        Security::StartTls => {
            let mut open = Imap::begin(stream).await?;
            open.run("STARTTLS").await?;
            Imap::greeted(
                Box::new(encrypted(endpoint, open.into_stream()).await?) as Box<dyn Stream>
            )
        }
    };
    let login = |text| quoted("a login", text).map_err(|_| Error::Login);
    let name = &account.username;
    let password = account.password.expose_secret();
    let command = format!("LOGIN {} {}", login(name)?, login(password)?);
    // The server's answer to a login may repeat it.
    session.run(&command).await.map_err(|_| Error::Login)?;
    Ok(session)
}

async fn encrypted(endpoint: &Endpoint, stream: TcpStream) -> Result<TlsStream<TcpStream>> {
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unreachable(endpoint, error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(endpoint.host.clone());
    let name = name.map_err(|error| unreachable(endpoint, error))?;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| unreachable(endpoint, error))
}

/// Returns the error for a server that cannot be reached.
pub fn unreachable(
    endpoint: &Endpoint,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::Unreachable { server: endpoint.to_string(), reason: reason.into() }
}
