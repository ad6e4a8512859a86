//! Finds, reads and drafts.

use std::collections::BTreeSet;

use imap_proto::{AttributeValue, Response};

use super::connection::{connect, within};
use super::folders::{Folders, ensure};
use super::session::Imap;
use crate::account::Servers;
use crate::compose::Written;
use crate::message::{self, THREAD, bracketed, searchable};
use crate::query::{imap_key, quoted};
use crate::written::Draft;
use crate::{Account, Error, Message, Messages, Result, Summary};

/// The fields of a message for a list.
const HEADERS: &str = "(UID FLAGS BODY.PEEK[HEADER])";
/// A whole message, left as unread as it was.
const WHOLE: &str = "(UID FLAGS BODY.PEEK[])";

pub struct ImapMailbox {
    pub account: Account,
    pub servers: Servers,
}

pub struct MessageLocation {
    pub folder: String,
    pub uid: u32,
}

impl ImapMailbox {
    /// Logs in once to see that it works.
    pub async fn open(account: Account, servers: Servers) -> Result<Self> {
        let mailbox = Self { account, servers };
        mailbox.log_in().await?.log_out().await;
        Ok(mailbox)
    }

    pub async fn log_in(&self) -> Result<Imap> {
        connect(&self.servers.imap, &self.account).await
    }

    pub async fn special_folders(&self) -> Result<(Option<String>, Option<String>)> {
        let mut imap = self.log_in().await?;
        let folders = within(Folders::read(&mut imap)).await;
        imap.log_out().await;
        let folders = folders?;
        Ok((folders.sent, folders.drafts))
    }

    /// Finds messages in a folder, newest first.
    pub async fn search(
        &self,
        query: &str,
        folder: &str,
        limit: usize,
    ) -> Result<Messages<Summary>> {
        let key = imap_key(query)?;
        let mut imap = self.log_in().await?;
        let found = within(async {
            let folders = Folders::read(&mut imap).await?;
            let folder = folders.named(folder)?;
            imap.examine(&folder).await?;
            let mut uids: Vec<u32> = imap.search(&key).await?;
            uids.sort_unstable_by(|a, b| b.cmp(a));
            let truncated = uids.len() > limit;
            uids.truncate(limit);
            let mut found = Vec::new();
            for (uid, is_unread, bytes) in fetch(&mut imap, &uids, HEADERS).await? {
                found.push((uid, message::read(&bytes, &folder, uid).summary(is_unread)));
            }
            found.sort_by_key(|(uid, _)| std::cmp::Reverse(*uid));
            let messages = found.into_iter().map(|(_, summary)| summary).collect();
            Ok(Messages { messages, truncated })
        })
        .await;
        imap.log_out().await;
        found
    }

    /// Reads the newest messages of a thread and the named one, oldest first, from all folders.
    pub async fn thread(&self, id: &str) -> Result<Messages<Message>> {
        let mut imap = self.log_in().await?;
        let read = within(async {
            let folders = Folders::read(&mut imap).await?;
            let (first, _) = self.message(&mut imap, &folders, id).await?;
            let mut wanted: BTreeSet<String> = first.references.iter().cloned().collect();
            wanted.extend(first.in_reply_to.clone());
            let asked = first.id.clone();
            wanted.insert(asked.clone());
            let mut messages = vec![first];
            for folder in &folders.all {
                if imap.examine(folder).await.is_err() {
                    continue;
                }
                let mut uids = BTreeSet::new();
                for id in wanted.iter().filter(|id| id.starts_with('<')).take(THREAD) {
                    let id = quoted("the ID of a message", id)?;
                    let key = format!("OR OR HEADER MESSAGE-ID {id} HEADER REFERENCES {id} HEADER IN-REPLY-TO {id}");
                    uids.extend(imap.search(&key).await?);
                }
                // One more than is shown, so that it is known that there are more.
                let uids: Vec<u32> = uids.into_iter().rev().take(THREAD + 1).collect();
                for uid in uids.into_iter().rev() {
                    // One at a time, because each can have large attachments.
                    let fetched = fetch(&mut imap, &[uid], WHOLE).await?.into_iter().next();
                    let Some((uid, _, bytes)) = fetched else { continue };
                    let read = message::read(&bytes, folder, uid);
                    if !messages.iter().any(|known| known.id == read.id) {
                        messages.push(read);
                    }
                }
            }
            Ok(message::newest(messages, &asked))
        })
        .await;
        imap.log_out().await;
        read
    }

    pub async fn draft(&self, draft: Draft<'_>, id: &str) -> Result<Message> {
        let mut imap = self.log_in().await?;
        let kept = within(async {
            let folders = Folders::read(&mut imap).await?;
            let followed = match draft.follows() {
                Some(id) => Some(self.message(&mut imap, &folders, id).await?),
                None => None,
            };
            let written = draft.write(&self.account, followed.as_ref(), id)?;
            self.keep(&mut imap, &folders, &written).await
        })
        .await;
        imap.log_out().await;
        kept
    }

    async fn keep(&self, imap: &mut Imap, folders: &Folders, written: &Written) -> Result<Message> {
        let drafts = ensure(imap, folders.drafts.clone(), "Drafts").await?;
        // The same id is the same message: a repeated call finds what the first one kept.
        if let Some(uid) = find(imap, &drafts, &written.id).await? {
            let known = fetch(imap, &[uid], WHOLE).await?.into_iter().next();
            if let Some((uid, _, bytes)) = known {
                return Ok(message::read(&bytes, &drafts, uid));
            }
        }
        imap.append(&drafts, "\\Draft \\Seen", &written.bytes).await?;
        Ok(message::read(&written.bytes, &drafts, 0))
    }

    /// Reads a message from any folder; returns it with its bytes.
    async fn message(
        &self,
        imap: &mut Imap,
        folders: &Folders,
        id: &str,
    ) -> Result<(Message, Vec<u8>)> {
        let place = locate(imap, folders, id).await?;
        let found = fetch(imap, &[place.uid], WHOLE).await?.into_iter().next();
        let (uid, _, bytes) = found.ok_or_else(|| Error::NoMessage(id.to_owned()))?;
        Ok((message::read(&bytes, &place.folder, uid), bytes))
    }
}

/// Finds a message in all folders, and leaves the folder of it open for reading.
pub async fn locate(imap: &mut Imap, folders: &Folders, id: &str) -> Result<MessageLocation> {
    if let Some(rest) = id.strip_prefix("uid:") {
        let bad = || Error::BadId(id.to_owned());
        let (uid, folder) = rest.split_once(':').ok_or_else(bad)?;
        let folder = folders.named(folder)?;
        imap.examine(&folder).await?;
        return Ok(MessageLocation { folder, uid: uid.parse().map_err(|_| bad())? });
    }
    for folder in &folders.all {
        match find(imap, folder, id).await {
            Ok(Some(uid)) => return Ok(MessageLocation { folder: folder.clone(), uid }),
            // A folder of another person may be listed and not be open to this account.
            Err(Error::Server(answer)) if answer.starts_with("NO") => {}
            found => drop(found?),
        }
    }
    Err(Error::NoMessage(id.to_owned()))
}

/// Finds a message in one folder by its Message-ID, and leaves the folder open for reading.
pub async fn find(imap: &mut Imap, folder: &str, id: &str) -> Result<Option<u32>> {
    let id = searchable(id).ok_or_else(|| Error::BadId(bracketed(id)))?;
    imap.examine(folder).await?;
    let id = quoted("the ID of a message", &id)?;
    let found = imap.search(&format!("HEADER MESSAGE-ID {id}")).await?;
    Ok(found.into_iter().max())
}

/// Fetches parts of messages: their number, whether they are unread, the bytes.
pub async fn fetch(imap: &mut Imap, uids: &[u32], what: &str) -> Result<Vec<(u32, bool, Vec<u8>)>> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let set: Vec<String> = uids.iter().map(u32::to_string).collect();
    let mut fetched = Vec::new();
    for response in imap.run(&format!("UID FETCH {} {what}", set.join(","))).await? {
        let Response::Fetch(_, values) = response else { continue };
        let mut uid = None;
        let mut is_unread = true;
        let mut bytes = None;
        for value in values {
            match value {
                AttributeValue::Uid(number) => uid = Some(number),
                AttributeValue::Flags(flags) => {
                    is_unread = !flags.iter().any(|flag| flag.eq_ignore_ascii_case("\\Seen"));
                }
                AttributeValue::BodySection { data, .. } => bytes = data,
                _ => {}
            }
        }
        if let (Some(uid), Some(bytes)) = (uid, bytes) {
            fetched.push((uid, is_unread, bytes.into_owned()));
        }
    }
    Ok(fetched)
}
