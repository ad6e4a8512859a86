//! Finds, reads and drafts.

use serde_json::{Value, json};

use super::client::JmapClient;
use super::folders::Folders;
use super::wire::{Changed, EMAIL, Email, Failure, Got, Identity, Queried};
use crate::account::JmapServer;
use crate::compose::{self, Written};
use crate::message::{self, THREAD, bracketed, searchable};
use crate::query::jmap_conditions;
use crate::written::Draft;
use crate::{Account, Error, Message, Messages, Result, Summary};

pub struct JmapMailbox {
    pub account: Account,
    pub client: JmapClient,
}

/// A message that was found, and the state of all messages at that time.
pub struct Found {
    pub email: Email,
    pub state: String,
}

impl JmapMailbox {
    pub async fn open(account: Account, server: &JmapServer) -> Result<Self> {
        let client = JmapClient::open(&account, server).await?;
        Ok(Self { account, client })
    }

    pub async fn special_folders(&self) -> Result<(Option<String>, Option<String>)> {
        let folders = Folders::read(&self.client).await?;
        let named = |role| folders.role(role).map(str::to_owned);
        Ok((named("sent"), named("drafts")))
    }

    /// Returns the identity to send as: that of the sender's address, or the server's first.
    pub async fn identity(&self) -> Result<String> {
        let answers = self.client.call(vec![("Identity/get", json!({ "ids": null }))]).await?;
        let got: Got<Identity> = answers.get(0)?;
        let from = compose::plain_address(&self.account.from)?;
        let own = got.list.iter().find(|known| known.email.eq_ignore_ascii_case(&from));
        let identity = own.or_else(|| got.list.first());
        identity
            .map(|identity| identity.id.clone())
            .ok_or_else(|| Error::Server("this account may not send".to_owned()))
    }

    pub async fn search(
        &self,
        query: &str,
        folder: &str,
        limit: usize,
    ) -> Result<Messages<Summary>> {
        let mut conditions = jmap_conditions(query)?;
        let (path, folder) = Folders::read(&self.client).await?.named(folder)?;
        conditions.push(json!({ "inMailbox": folder }));
        // One more shows that there are more.
        let (ids, got) = self.query(conditions, limit + 1).await?;
        let found = ids.iter().filter_map(|id| got.list.iter().find(|email| email.id == *id));
        let messages = found.take(limit).map(|email| email.summary(&path)).collect();
        Ok(Messages { messages, truncated: ids.len() > limit })
    }

    pub async fn thread(&self, id: &str) -> Result<Messages<Message>> {
        let folders = Folders::read(&self.client).await?;
        let first = self.locate(id).await?.email;
        let back = |call: &str, name: &str, path: &str| json!({ "resultOf": call, "name": name, "path": path });
        let answers = self
            .client
            .call(vec![
                ("Email/get", json!({ "ids": [first.id], "properties": ["threadId"] })),
                ("Thread/get", json!({ "#ids": back("0", "Email/get", "/list/*/threadId") })),
                (
                    "Email/get",
                    json!({ "#ids": back("1", "Thread/get", "/list/*/emailIds"), "properties": EMAIL }),
                ),
            ])
            .await?;
        let got: Got<Email> = answers.get(2)?;
        let mut messages = vec![self.read(&first, &folders).await?.0];
        let asked = messages[0].id.clone();
        // A server lists a thread oldest first.
        let mut others = got.list.iter().rev().filter(|email| email.id != first.id);
        // A message can be in several folders, so that more are read than are shown.
        for email in others.by_ref().take(4 * THREAD) {
            if messages.len() > THREAD {
                break;
            }
            let read = self.read(email, &folders).await?.0;
            if !messages.iter().any(|known| known.id == read.id) {
                messages.push(read);
            }
        }
        let mut newest = message::newest(messages, &asked);
        newest.truncated |= others.next().is_some();
        Ok(newest)
    }

    pub async fn draft(&self, draft: Draft<'_>, id: &str) -> Result<Message> {
        let folders = Folders::read(&self.client).await?;
        let followed = match draft.follows() {
            Some(id) => Some(self.message(&folders, id).await?),
            None => None,
        };
        self.keep(&folders, draft.write(&self.account, followed.as_ref(), id)?).await
    }

    async fn keep(&self, folders: &Folders, written: Written) -> Result<Message> {
        let (path, drafts) = folders.ensure(&self.client, "drafts", "Drafts").await?;
        // The same id is the same message: a repeated call finds what the first one kept.
        if let Some(found) = self.find(Some(&drafts), &written.id).await? {
            return Ok(self.read(&found.email, folders).await?.0);
        }
        let blob = self.client.upload(written.bytes.clone()).await?;
        let import = json!({ "emails": { "d": {
            "blobId": blob, "mailboxIds": { drafts: true }, "keywords": { "$draft": true, "$seen": true },
        } } });
        let changed: Changed = self.client.call(vec![("Email/import", import)]).await?.get(0)?;
        match changed.failure() {
            Some(Failure { existing: None, kind, .. }) if kind != "alreadyExists" => {
                Err(Error::Server(kind))
            }
            _ => Ok(message::parse(&written.bytes, &path, written.id)),
        }
    }

    /// Reads a message from any folder; returns it with its bytes.
    async fn message(&self, folders: &Folders, id: &str) -> Result<(Message, Vec<u8>)> {
        let found = self.locate(id).await?;
        self.read(&found.email, folders).await
    }

    pub async fn read(&self, email: &Email, folders: &Folders) -> Result<(Message, Vec<u8>)> {
        let bytes = self.client.download(&email.blob_id).await?;
        let folder = folders.path(email.mailbox_ids.keys());
        Ok((message::parse(&bytes, &folder, email.fallback()), bytes))
    }

    async fn locate(&self, id: &str) -> Result<Found> {
        let found = match id.strip_prefix("jmap:") {
            Some(own) => {
                let get = json!({ "ids": [own], "properties": EMAIL });
                let got: Got<Email> = self.client.call(vec![("Email/get", get)]).await?.get(0)?;
                let state = got.state;
                got.list.into_iter().next().map(|email| Found { email, state })
            }
            None => self.find(None, id).await?,
        };
        found.ok_or_else(|| Error::NoMessage(id.to_owned()))
    }

    /// Finds a message by its Message-ID, in one folder or in all.
    pub async fn find(&self, folder: Option<&str>, id: &str) -> Result<Option<Found>> {
        let id = searchable(id).ok_or_else(|| Error::BadId(bracketed(id)))?;
        let mut conditions = vec![json!({ "header": ["Message-ID", id] })];
        conditions.extend(folder.map(|folder| json!({ "inMailbox": folder })));
        let (_, got) = self.query(conditions, 10).await?;
        let state = got.state;
        let found = got.list.into_iter().find(|email| email.name() == id);
        Ok(found.map(|email| Found { email, state }))
    }

    async fn query(
        &self,
        conditions: Vec<Value>,
        limit: usize,
    ) -> Result<(Vec<String>, Got<Email>)> {
        let query = json!({
            "filter": { "operator": "AND", "conditions": conditions },
            "sort": [{ "property": "receivedAt", "isAscending": false }], "limit": limit,
        });
        let found = json!({ "resultOf": "0", "name": "Email/query", "path": "/ids" });
        let get = json!({ "#ids": found, "properties": EMAIL });
        let answers = self.client.call(vec![("Email/query", query), ("Email/get", get)]).await?;
        let queried: Queried = answers.get(0)?;
        Ok((queried.ids, answers.get(1)?))
    }
}
