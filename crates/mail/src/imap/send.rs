//! Sends a draft, once.
//!
//! | ended | what the next call finds |
//! |---|---|
//! | before the mark | a plain draft: it sends |
//! | after the mark, before or while handing over | a marked draft that is not in Sent: the outcome is unknown; a person decides |
//! | after handing over, before Sent | the same |
//! | after Sent, before the draft is removed | it is in Sent: it removes the draft and says so |
//! | after all | it is in Sent: it says so |

use imap_proto::{AttributeValue, Capability, Response, ResponseCode};
use lettre::address::Envelope;

use super::connection::within;
use super::folders::{Folders, ensure};
use super::mailbox::{ImapMailbox, fetch, find};
use super::session::Imap;
use super::smtp;
use crate::compose::{address, recipients};
use crate::message;
use crate::sent::{SENDING, Sent};
use crate::{Account, Error, Result, Shown};

impl ImapMailbox {
    pub async fn send(&self, id: &str, shown: Option<&Shown>, resend: bool) -> Result<Sent> {
        let mut imap = self.log_in().await?;
        let sent = self.send_once(&mut imap, id, shown, resend).await;
        imap.log_out().await;
        sent
    }

    /// Logs in to the outgoing server without sending.
    pub async fn check_outgoing(&self) -> Result<()> {
        smtp::quit(smtp::connect(&self.servers.smtp, &self.account).await?).await;
        Ok(())
    }

    pub(super) async fn send_once(
        &self,
        imap: &mut Imap,
        id: &str,
        shown: Option<&Shown>,
        resend: bool,
    ) -> Result<Sent> {
        let folders = within(Folders::read(imap)).await?;
        let drafts = within(ensure(imap, folders.drafts.clone(), "Drafts")).await?;
        let sent = within(ensure(imap, folders.sent.clone(), "Sent")).await?;
        let draft = within(find(imap, &drafts, id)).await?;
        if within(find(imap, &sent, id)).await?.is_some() {
            if let Some(uid) = draft {
                within(remove(imap, &drafts, uid)).await?;
            }
            return Ok(Sent::before(id));
        }
        let uid = draft.ok_or_else(|| Error::NoDraft(id.to_owned()))?;
        let can_mark = keeps_marks(&within(imap.select(&drafts)).await?);
        if !can_mark && !resend {
            return Err(Error::NoMark(id.to_owned()));
        }
        let change = within(last_change(imap, uid)).await?;
        let (bytes, is_marked) = within(whole(imap, uid)).await?;
        if is_marked && !resend {
            return Err(Error::outcome_unknown(id, None));
        }
        let read = message::read(&bytes, &drafts, uid);
        if let Some(shown) = shown {
            shown.check(&read)?;
        }
        let recipients = recipients(&read);
        let envelope = envelope(&self.account, &recipients)?;
        let outgoing = without_bcc(&bytes);
        let endpoint = &self.servers.smtp;
        let connection = smtp::connect(endpoint, &self.account).await?;
        if !within(claim(imap, uid, change)).await? {
            return Err(Error::outcome_unknown(id, None));
        }
        if let Err(error) = smtp::hand_over(connection, endpoint, &envelope, &outgoing).await {
            // A clear refusal is no unknown outcome; if the mark stays, the next call asks a person.
            if matches!(error, Error::Refused(_)) {
                let _ = within(mark(imap, uid, '-')).await;
                return Err(error);
            }
            return Err(Error::outcome_unknown(id, Some(error)));
        }
        let filed = within(async {
            imap.append(&sent, "\\Seen", &outgoing).await?;
            remove(imap, &drafts, uid).await
        });
        Ok(Sent::now(id, recipients, filed.await))
    }
}

fn envelope(account: &Account, recipients: &[String]) -> Result<Envelope> {
    let addresses = recipients.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
    Envelope::new(Some(address(&account.from)?), addresses).map_err(|_| Error::NoRecipient)
}

/// Returns whether a folder keeps the mark after the session (RFC 3501: a server that lists no flags keeps all).
fn keeps_marks(opened: &[Response<'_>]) -> bool {
    let kept = opened.iter().rev().find_map(|response| match response {
        Response::Data { outcome, .. } => match &outcome.code {
            Some(ResponseCode::PermanentFlags(kept)) => Some(kept),
            _ => None,
        },
        _ => None,
    });
    kept.is_none_or(|kept| {
        kept.iter().any(|flag| flag == "\\*" || flag.eq_ignore_ascii_case(SENDING))
    })
}

async fn whole(imap: &mut Imap, uid: u32) -> Result<(Vec<u8>, bool)> {
    let fetched = fetch(imap, &[uid], "(UID FLAGS BODY.PEEK[])").await?.into_iter().next();
    let (_, _, bytes) = fetched.ok_or_else(|| Error::NoDraft(uid.to_string()))?;
    let marked = imap.search(&format!("UID {uid} KEYWORD {SENDING}")).await?;
    Ok((bytes, !marked.is_empty()))
}

/// Returns the number of a message's last change, if the server counts them (RFC 7162).
async fn last_change(imap: &mut Imap, uid: u32) -> Result<Option<u64>> {
    let counts = |response: &Response<'_>| {
        let Response::Capabilities(able) = response else { return false };
        able.iter().any(
            |one| matches!(one, Capability::Atom(name) if name.eq_ignore_ascii_case("CONDSTORE")),
        )
    };
    if !imap.run("CAPABILITY").await?.iter().any(counts) {
        return Ok(None);
    }
    let fetched = imap.run(&format!("UID FETCH {uid} (UID MODSEQ)")).await?;
    let of_draft = fetched.iter().filter_map(|response| match response {
        Response::Fetch(_, values) if values.contains(&AttributeValue::Uid(uid)) => Some(values),
        _ => None,
    });
    Ok(of_draft.flatten().find_map(|value| match value {
        AttributeValue::ModSeq(change) => Some(*change),
        _ => None,
    }))
}

/// Marks a draft, and returns whether it is unchanged since the given number: of two senders, the second one finds this
/// mark. A server that does not count changes lets two concurrent senders through.
///
/// A process whose parent was killed may still be sending when its successor begins.
async fn claim(imap: &mut Imap, uid: u32, change: Option<u64>) -> Result<bool> {
    let Some(change) = change else {
        mark(imap, uid, '+').await?;
        return Ok(true);
    };
    let command = format!("UID STORE {uid} (UNCHANGEDSINCE {change}) +FLAGS ({SENDING})");
    let answer = imap.ask(&command).await?;
    if answer.line.to_ascii_uppercase().contains("[MODIFIED") {
        return Ok(false);
    }
    answer.succeeded()?;
    Ok(true)
}

async fn mark(imap: &mut Imap, uid: u32, sign: char) -> Result<()> {
    imap.run(&format!("UID STORE {uid} {sign}FLAGS ({SENDING})")).await.map(drop)
}

async fn remove(imap: &mut Imap, folder: &str, uid: u32) -> Result<()> {
    imap.select(folder).await?;
    imap.run(&format!("UID STORE {uid} +FLAGS (\\Deleted)")).await?;
    // A server without the extension keeps it as deleted; it is not sent again because it is in Sent.
    let _ = imap.ask(&format!("UID EXPUNGE {uid}")).await;
    Ok(())
}

/// Leaves out the header that recipients must not see.
fn without_bcc(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut is_head = true;
    let mut skips = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        is_head &= !matches!(line, b"\r\n" | b"\n");
        let is_folded = line.starts_with(b" ") || line.starts_with(b"\t");
        if !(is_head && is_folded) {
            skips = is_head && line.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"bcc:"));
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
    fn only_hidden_recipients_are_removed_from_the_head() {
        let text = b"To: a@a.test\r\nBcc: b@b.test,\r\n c@c.test\r\nSubject: s\r\n\r\nBcc: said in the text\r\n";
        let kept = String::from_utf8(without_bcc(text)).unwrap();
        assert_eq!(kept, "To: a@a.test\r\nSubject: s\r\n\r\nBcc: said in the text\r\n");
        assert_eq!(message::read(text, "Drafts", 1).bcc, ["b@b.test", "c@c.test"]);
    }

    /// S3.07: without a mark that stays, a draft that was sent before a crash looks unsent.
    #[test]
    fn a_folder_that_forgets_keywords_cannot_mark() {
        for (line, keeps) in [
            ("* OK [PERMANENTFLAGS (\\Seen \\Deleted \\*)] limited\r\n", true),
            ("* OK [PERMANENTFLAGS (\\Seen $PerihelionSending)] limited\r\n", true),
            ("* OK [PERMANENTFLAGS (\\Seen \\Deleted)] limited\r\n", false),
            ("* OK [PERMANENTFLAGS ()] read only\r\n", false),
            ("* 3 EXISTS\r\n", true),
        ] {
            let (_, opened) = Response::parse(line.as_bytes()).unwrap();
            assert_eq!(keeps_marks(&[opened]), keeps, "{line}");
        }
    }
}
