//! Reads and answers one account's mail: `perihelion mcp mail`.
//!
//! Enter at [`Server::open`]. Invariant: nothing leaves but by `send`, which takes a draft that a person could have read, and sends it
//! once. Deliberately absent: deleting and moving mail.

mod check;
mod tools;

use perihelion_mail::{Account, Endpoint, Mailbox, Security};

pub use check::check;
pub use tools::Server;

/// The environment variable that holds the password; there is no option for it, which everybody could read.
const PASSWORD: &str = "PERIHELION_MAIL_PASSWORD";

/// What `perihelion mcp mail` is told. The password is read from PERIHELION_MAIL_PASSWORD.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// IMAP server: HOST or HOST:PORT.
    #[arg(long, value_name = "HOST:PORT", env = "PERIHELION_MAIL_IMAP")]
    pub imap: String,
    /// SMTP server: HOST or HOST:PORT.
    #[arg(long, value_name = "HOST:PORT", env = "PERIHELION_MAIL_SMTP")]
    pub smtp: String,
    /// How connections are protected; plain ones are made to this machine only.
    #[arg(long, value_enum, default_value_t = SecurityName::Tls)]
    pub security: SecurityName,
    /// Name of the account.
    #[arg(long, env = "PERIHELION_MAIL_USER")]
    pub user: String,
    /// Sender of what is written: `ADDRESS`, or `NAME <ADDRESS>`; the account's name by default.
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
}

/// Name of a protection on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SecurityName {
    /// From the first byte: ports 993 and 465.
    Tls,
    /// After a request: ports 143 and 587.
    Starttls,
    /// Not: ports 143 and 587 of this machine.
    Plain,
}

impl Options {
    async fn open(&self) -> Result<Mailbox, Error> {
        let password = std::env::var(PASSWORD).map_err(|_| Error::NoPassword)?;
        let (security, imap, smtp) = match self.security {
            SecurityName::Tls => (Security::Tls, 993, 465),
            SecurityName::Starttls => (Security::StartTls, 143, 587),
            SecurityName::Plain => (Security::Plain, 143, 587),
        };
        let account = Account {
            imap: endpoint(&self.imap, imap, security)?,
            smtp: endpoint(&self.smtp, smtp, security)?,
            username: self.user.clone(),
            password: password.into(),
            from: self.from.clone().unwrap_or_else(|| self.user.clone()),
        };
        crate::config::tls::install();
        Ok(Mailbox::open(account).await?)
    }
}

fn endpoint(text: &str, default: u16, security: Security) -> Result<Endpoint, Error> {
    let bad = || Error::BadServer(text.to_owned());
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().map_err(|_| bad())?)
        }
        _ => (text, default),
    };
    if host.is_empty() {
        return Err(bad());
    }
    Ok(Endpoint { host: host.to_owned(), port, security })
}

/// Why the mailbox could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the password of the mail account is read from the environment variable {PASSWORD}, which is not set"
    )]
    NoPassword,
    #[error("a mail server is HOST or HOST:PORT, not: {0}")]
    BadServer(String),
    #[error(transparent)]
    Mail(#[from] perihelion_mail::Error),
}
