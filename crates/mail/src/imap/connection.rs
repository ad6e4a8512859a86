//! Connections to the IMAP server.

use std::sync::Arc;

use async_imap::{Client, Session};
use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::account::LIMIT;
use crate::{Account, Endpoint, Error, Security};

/// What a connection runs over.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug> Stream for T {}

/// A logged-in session.
pub type Imap = Session<Box<dyn Stream>>;

/// Connects and logs in.
pub async fn connect(endpoint: &Endpoint, account: &Account) -> Result<Imap, Error> {
    within(log_in(endpoint, account)).await
}

/// Bounds an exchange.
pub async fn within<T>(exchange: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(LIMIT, exchange).await.map_err(|_| Error::Timeout(LIMIT.as_secs()))?
}

async fn log_in(endpoint: &Endpoint, account: &Account) -> Result<Imap, Error> {
    let server = format!("{}:{}", endpoint.host, endpoint.port);
    if endpoint.security == Security::Plain && !endpoint.is_local() {
        return Err(Error::Unprotected(server));
    }
    let unreachable = |error: std::io::Error| Error::Unreachable {
        server: server.clone(),
        reason: error.to_string(),
    };
    let address = (endpoint.host.trim_matches(['[', ']']), endpoint.port);
    let stream = TcpStream::connect(address).await.map_err(unreachable)?;
    let greeted = |stream: Box<dyn Stream>| async move {
        let mut client = Client::new(stream);
        let greeting =
            client.read_response().await.map_err(|error| Error::Server(error.to_string()))?;
        greeting.ok_or_else(|| Error::Server("it hung up".to_owned()))?;
        Ok::<_, Error>(client)
    };
    let client = match endpoint.security {
        Security::Plain => greeted(Box::new(stream)).await?,
        Security::Tls => greeted(Box::new(encrypted(endpoint, stream).await?)).await?,
        Security::StartTls => {
            let mut client = Client::new(stream);
            client.read_response().await.map_err(|error| Error::Server(error.to_string()))?;
            client.run_command_and_check_ok("STARTTLS", None).await?;
            Client::new(Box::new(encrypted(endpoint, client.into_inner()).await?) as Box<dyn Stream>)
        }
    };
    let session = client.login(&account.username, account.password.expose_secret()).await;
    // What the server says of a login may repeat it.
    session.map_err(|_| Error::Login)
}

async fn encrypted(endpoint: &Endpoint, stream: TcpStream) -> Result<TlsStream<TcpStream>, Error> {
    let server = format!("{}:{}", endpoint.host, endpoint.port);
    let failed = |reason: String| Error::Unreachable { server: server.clone(), reason };
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name =
        ServerName::try_from(endpoint.host.clone()).map_err(|error| failed(error.to_string()))?;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| failed(error.to_string()))
}
