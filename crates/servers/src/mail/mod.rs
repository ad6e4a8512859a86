//! Reads and answers one account's mail: `perihelion mcp mail`.
//!
//! Enter at [`Server::open`]. Invariant: only `send` sends mail. It takes a draft that a person could have read, and
//! sends it once. Deliberately absent: deleting and moving mail.

mod tools;

use perihelion_mail::{Account, Endpoint, JmapServer, Mailbox, Security, Servers};

pub use tools::Server;

/// The environment variable with the password; there is no option for it, because options are public.
const PASSWORD: &str = "PERIHELION_MAIL_PASSWORD";
/// The environment variable with a bearer token for JMAP instead of a password.
const TOKEN: &str = "PERIHELION_MAIL_TOKEN";

/// Options of `perihelion mcp mail`. The password comes from PERIHELION_MAIL_PASSWORD, a token for JMAP from PERIHELION_MAIL_TOKEN.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// JMAP server: HOST, HOST:PORT or session URL. Used instead of IMAP and SMTP if it supports mail.
    #[arg(
        long,
        value_name = "HOST",
        env = "PERIHELION_MAIL_JMAP",
        required_unless_present = "imap"
    )]
    pub jmap: Option<String>,
    /// IMAP server: HOST or HOST:PORT.
    #[arg(long, value_name = "HOST:PORT", env = "PERIHELION_MAIL_IMAP", requires = "smtp")]
    pub imap: Option<String>,
    /// SMTP server: HOST or HOST:PORT.
    #[arg(long, value_name = "HOST:PORT", env = "PERIHELION_MAIL_SMTP", requires = "imap")]
    pub smtp: Option<String>,
    /// Encryption of connections. `plain` is only allowed for this machine.
    #[arg(long, value_enum, default_value_t = SecurityName::Tls)]
    pub security: SecurityName,
    /// User name of the account.
    #[arg(long, env = "PERIHELION_MAIL_USER")]
    pub user: String,
    /// Sender of messages: `ADDRESS` or `NAME <ADDRESS>`. Defaults to the user name.
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<String>,
}

/// Name of a protection on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SecurityName {
    /// TLS from the first byte, on ports 993 and 465.
    Tls,
    /// TLS after STARTTLS, on ports 143 and 587.
    Starttls,
    /// Unencrypted, on ports 143 and 587 of this machine.
    Plain,
}

impl Options {
    /// Opens the account by JMAP if it is offered, otherwise by IMAP and SMTP.
    pub(crate) async fn open(&self) -> Result<Mailbox, Error> {
        perihelion_settings::config::tls::install();
        let Some(jmap) = &self.jmap else {
            return self.open_imap().await;
        };
        let token = std::env::var(TOKEN).ok();
        let server = JmapServer::read(jmap, self.security.protection(), token.is_some())?;
        match Mailbox::open_jmap(self.account(token)?, &server).await {
            Err(
                error @ (perihelion_mail::Error::NoJmap(_)
                | perihelion_mail::Error::Timeout(_)
                | perihelion_mail::Error::Unreachable { .. }),
            ) if self.imap.is_some() => {
                tracing::warn!("using IMAP: {error}");
                self.open_imap().await
            }
            opened => Ok(opened?),
        }
    }

    async fn open_imap(&self) -> Result<Mailbox, Error> {
        let security = self.security.protection();
        let (imap, smtp) = match security {
            Security::Tls => (993, 465),
            Security::StartTls | Security::Plain => (143, 587),
        };
        let servers = Servers {
            imap: endpoint(self.imap.as_deref().unwrap_or_default(), imap, security)?,
            smtp: endpoint(self.smtp.as_deref().unwrap_or_default(), smtp, security)?,
        };
        Ok(Mailbox::open(self.account(None)?, servers).await?)
    }

    fn account(&self, token: Option<String>) -> Result<Account, Error> {
        let secret = token.or_else(|| std::env::var(PASSWORD).ok()).ok_or(Error::NoPassword)?;
        Ok(Account {
            username: self.user.clone(),
            password: secret.into(),
            from: self.from.clone().unwrap_or_else(|| self.user.clone()),
        })
    }
}

impl SecurityName {
    fn protection(self) -> Security {
        match self {
            Self::Tls => Security::Tls,
            Self::Starttls => Security::StartTls,
            Self::Plain => Security::Plain,
        }
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
        "the password of the mail account is read from the environment variable {PASSWORD}, which is not set (a token for JMAP, from {TOKEN})"
    )]
    NoPassword,
    #[error("a mail server is HOST or HOST:PORT, not: {0}")]
    BadServer(String),
    #[error(transparent)]
    Mail(#[from] perihelion_mail::Error),
}
