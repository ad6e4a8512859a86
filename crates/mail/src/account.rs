use secrecy::SecretString;

/// Who reads and sends, and where.
#[derive(Clone, Debug)]
pub struct Account {
    pub imap: Endpoint,
    pub smtp: Endpoint,
    pub username: String,
    pub password: SecretString,
    /// Address of the sender, with a name where one is given: `Ann <ann@example.org>`.
    pub from: String,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
    pub security: Security,
}

/// How a connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// From the first byte.
    Tls,
    /// After a request for it, and not at all without.
    StartTls,
    /// Not; on this machine only.
    Plain,
}

impl Endpoint {
    /// Returns whether the server is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let ip = self.host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        self.host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    }
}
