//! TLS to PostgreSQL by the `sslmode` and `sslrootcert` of a connection string, as libpq reads them.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;

/// Makes the TLS part of a connection.
pub type Connector = MakeRustlsConnect;

/// A connection string without what tokio-postgres does not read, and how to use TLS.
pub struct Settings {
    pub dsn: String,
    /// What the connection string says; `None` leaves it to tokio-postgres.
    pub mode: Option<SslMode>,
    pub connector: Connector,
}

/// Reads the TLS settings of a connection string: a URL or `key=value` pairs.
pub fn settings(dsn: &str) -> Result<Settings, Error> {
    let mut mode = None;
    let mut root = None;
    let mut is_other = |pair: &str| {
        let Some((key, value)) = pair.split_once('=') else { return true };
        let value = value.trim_matches('\'').to_owned();
        match key {
            "sslmode" => mode = Some(value),
            "sslrootcert" => root = Some(value),
            _ => return true,
        }
        false
    };
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| dsn.starts_with(scheme));
    let dsn = match dsn.split_once('?').filter(|_| is_url) {
        Some((address, query)) => {
            let others: Vec<&str> = query.split('&').filter(|pair| is_other(pair)).collect();
            format!("{address}?{}", others.join("&"))
        }
        None if is_url => dsn.to_owned(),
        None => pairs(dsn).filter(|pair| is_other(pair)).collect::<Vec<_>>().join(" "),
    };
    let (mode, is_verified) = match mode.as_deref() {
        None => (None, false),
        Some("disable") => (Some(SslMode::Disable), false),
        Some("allow" | "prefer") => (Some(SslMode::Prefer), false),
        Some("require") => (Some(SslMode::Require), root.is_some()),
        Some("verify-ca" | "verify-full") => (Some(SslMode::Require), true),
        Some(other) => return Err(Error::Tls(format!("unknown sslmode: {other}").into())),
    };
    Ok(Settings { dsn, mode, connector: connector(is_verified, root.as_deref())? })
}

/// Splits a connection string of `key=value` pairs at the spaces outside quotes.
fn pairs(dsn: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let ends = move |letter: char| {
        let was_escaped = is_escaped;
        is_escaped = letter == '\\' && !was_escaped;
        is_quoted ^= letter == '\'' && !was_escaped;
        letter.is_whitespace() && !is_quoted
    };
    dsn.split(ends).filter(|pair| !pair.is_empty())
}

fn connector(is_verified: bool, root: Option<&str>) -> Result<Connector, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::Tls(error.into()))?;
    if !is_verified {
        let any = Arc::new(AnyCertificate(provider));
        return Ok(Connector::new(
            builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth(),
        ));
    }
    let mut roots = RootCertStore::empty();
    match root.filter(|root| *root != "system") {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path)
                .map_err(|error| Error::Tls(error.into()))?;
            roots.add_parsable_certificates(certificates.flatten());
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    Ok(Connector::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Encrypts without checking the server's certificate, as libpq does up to `sslmode=require`.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
