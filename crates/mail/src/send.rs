//! Sends a draft, once.
//!
//! | ended | what the next call finds |
//! |---|---|
//! | before the mark | a plain draft: it sends |
//! | after the mark, before or while handing over | a marked draft that is not in Sent: nobody knows; a person decides |
//! | after handing over, before Sent | the same |
//! | after Sent, before the draft is removed | it is in Sent: it removes the draft and says so |
//! | after all | it is in Sent: it says so |

use futures::TryStreamExt;
use lettre::address::Envelope;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use schemars::JsonSchema;
use secrecy::ExposeSecret;
use serde::Serialize;

use crate::compose::address;
use crate::connection::{Imap, LIMIT, connect, within};
use crate::folders::{Folders, ensure};
use crate::mailbox::{Mailbox, fetch, find};
use crate::message::{self, bracketed};
use crate::{Account, Endpoint, Error, Message, Security, Shown};

/// Marks a draft whose sending began.
const SENDING: &str = "$PerihelionSending";

/// What became of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sent {
    /// Its Message-ID.
    pub id: String,
    pub state: SentState,
    /// Who it went to.
    pub recipients: Vec<String>,
}

/// Whether this call sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SentState {
    Sent,
    /// An earlier call did.
    AlreadySent,
}

impl Mailbox {
    /// Sends a draft by its id, if it still is what was shown; `resend` is a person's word that one whose outcome is unknown did not
    /// arrive.
    ///
    /// # Errors
    /// [`Error::NoDraft`], [`Error::Changed`], [`Error::OutcomeUnknown`], [`Error::Refused`] with the draft as it was, or what the servers say.
    pub async fn send(&self, id: &str, shown: Option<&Shown>, resend: bool) -> Result<Sent, Error> {
        let id = bracketed(id);
        let mut imap = connect(&self.account).await?;
        let sent = self.send_once(&mut imap, &id, shown, resend).await;
        let _ = imap.logout().await;
        sent
    }

    /// Logs in where mail is sent, and sends nothing.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Login`], [`Error::Unprotected`].
    pub async fn check_outgoing(&self) -> Result<(), Error> {
        match transport(&self.account)?.test_connection().await {
            Ok(_) => Ok(()),
            // What it says of a login may repeat it.
            Err(error) if error.is_permanent() || error.is_transient() => Err(Error::Login),
            Err(error) => Err(unreachable(&self.account.smtp, &error)),
        }
    }

    async fn send_once(
        &self,
        imap: &mut Imap,
        id: &str,
        shown: Option<&Shown>,
        resend: bool,
    ) -> Result<Sent, Error> {
        let folders = within(Folders::read(imap)).await?;
        let drafts = within(ensure(imap, folders.drafts.clone(), "Drafts")).await?;
        let sent = within(ensure(imap, folders.sent.clone(), "Sent")).await?;
        let draft = within(find(imap, &drafts, id)).await?;
        if within(find(imap, &sent, id)).await?.is_some() {
            if let Some(uid) = draft {
                within(remove(imap, &drafts, uid)).await?;
            }
            return Ok(Sent {
                id: id.to_owned(),
                state: SentState::AlreadySent,
                recipients: Vec::new(),
            });
        }
        let uid = draft.ok_or_else(|| Error::NoDraft(id.to_owned()))?;
        within(async { Ok(imap.select(&drafts).await?) }).await?;
        let (bytes, is_marked) = within(whole(imap, uid)).await?;
        if is_marked && !resend {
            return Err(Error::OutcomeUnknown(id.to_owned()));
        }
        let read = message::read(&bytes, &drafts, uid);
        if let Some(shown) = shown {
            shown.check(&read)?;
        }
        let (envelope, recipients) = self.envelope(&read)?;
        let outgoing = without_bcc(&bytes);
        within(mark(imap, uid, '+')).await?;
        if let Err(error) = hand_over(&self.account, &envelope, &outgoing).await {
            // A clear refusal is no unknown outcome.
            if matches!(error, Error::Refused(_)) {
                within(mark(imap, uid, '-')).await?;
            }
            return Err(error);
        }
        within(async { Ok(imap.append(&sent, Some("(\\Seen)"), None, &outgoing).await?) }).await?;
        within(remove(imap, &drafts, uid)).await?;
        Ok(Sent { id: id.to_owned(), state: SentState::Sent, recipients })
    }

    fn envelope(&self, draft: &Message) -> Result<(Envelope, Vec<String>), Error> {
        let recipients: Vec<String> =
            draft.to.iter().chain(&draft.cc).chain(&draft.bcc).cloned().collect();
        let addresses =
            recipients.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
        let envelope = Envelope::new(Some(address(&self.account.from)?), addresses)
            .map_err(|_| Error::NoRecipient)?;
        Ok((envelope, recipients))
    }
}

/// Reads a draft with its mark.
async fn whole(imap: &mut Imap, uid: u32) -> Result<(Vec<u8>, bool), Error> {
    let (_, _, bytes) = fetch(imap, &[uid], "(UID FLAGS BODY.PEEK[])")
        .await?
        .into_iter()
        .next()
        .ok_or(Error::NoDraft(uid.to_string()))?;
    let marked = imap.uid_search(format!("UID {uid} KEYWORD {SENDING}")).await?;
    Ok((bytes, !marked.is_empty()))
}

async fn mark(imap: &mut Imap, uid: u32, sign: char) -> Result<(), Error> {
    let changed: Vec<_> = imap
        .uid_store(uid.to_string(), format!("{sign}FLAGS ({SENDING})"))
        .await?
        .try_collect()
        .await?;
    drop(changed);
    Ok(())
}

async fn remove(imap: &mut Imap, folder: &str, uid: u32) -> Result<(), Error> {
    imap.select(folder).await?;
    let changed: Vec<_> =
        imap.uid_store(uid.to_string(), "+FLAGS (\\Deleted)").await?.try_collect().await?;
    drop(changed);
    let expunged: Result<Vec<_>, _> = match imap.uid_expunge(uid.to_string()).await {
        Ok(stream) => stream.try_collect().await,
        Err(error) => Err(error),
    };
    // A server without the extension keeps it as deleted, which nobody sends again: it is in Sent.
    drop(expunged);
    Ok(())
}

async fn hand_over(account: &Account, envelope: &Envelope, bytes: &[u8]) -> Result<(), Error> {
    match transport(account)?.send_raw(envelope, bytes).await {
        Ok(_) => Ok(()),
        // What the server said no to did not leave; anything else may have.
        Err(error) if error.is_permanent() || error.is_transient() => {
            Err(Error::Refused(error.to_string()))
        }
        Err(error) => Err(unreachable(&account.smtp, &error)),
    }
}

fn unreachable(endpoint: &Endpoint, error: &dyn std::fmt::Display) -> Error {
    Error::Unreachable {
        server: format!("{}:{}", endpoint.host, endpoint.port),
        reason: error.to_string(),
    }
}

fn transport(account: &Account) -> Result<AsyncSmtpTransport<Tokio1Executor>, Error> {
    let endpoint = &account.smtp;
    let parameters =
        || TlsParameters::new(endpoint.host.clone()).map_err(|error| unreachable(endpoint, &error));
    let tls = match endpoint.security {
        Security::Tls => Tls::Wrapper(parameters()?),
        Security::StartTls => Tls::Required(parameters()?),
        Security::Plain if endpoint.is_local() => Tls::None,
        Security::Plain => {
            return Err(Error::Unprotected(format!("{}:{}", endpoint.host, endpoint.port)));
        }
    };
    let credentials =
        Credentials::new(account.username.clone(), account.password.expose_secret().to_owned());
    let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(
        endpoint.host.trim_matches(['[', ']']),
    );
    let builder = builder.port(endpoint.port).tls(tls).credentials(credentials);
    Ok(builder.timeout(Some(LIMIT)).build())
}

/// Leaves out the header that recipients must not see.
fn without_bcc(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut is_head = true;
    let mut skips = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if is_head {
            let is_folded = line.first().is_some_and(|byte| *byte == b' ' || *byte == b'\t');
            is_head = !matches!(line, b"\r\n" | b"\n");
            skips = if is_folded {
                skips
            } else {
                line.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"bcc:"))
            };
        } else {
            skips = false;
        }
        if !skips {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_recipients_leave_the_head_and_nothing_else() {
        let text = b"To: a@a.test\r\nBcc: b@b.test,\r\n c@c.test\r\nSubject: s\r\n\r\nBcc: said in the text\r\n";
        let kept = String::from_utf8(without_bcc(text)).unwrap();
        assert_eq!(kept, "To: a@a.test\r\nSubject: s\r\n\r\nBcc: said in the text\r\n");
        assert_eq!(message::read(text, "Drafts", 1).bcc, ["b@b.test", "c@c.test"]);
    }
}
