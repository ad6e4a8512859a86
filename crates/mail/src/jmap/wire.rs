//! The necessary part of a JMAP server's responses.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::message::searchable;
use crate::sent::SENDING;
use crate::{Error, Result, Summary};

pub const CORE: &str = "urn:ietf:params:jmap:core";
pub const MAIL: &str = "urn:ietf:params:jmap:mail";
pub const SUBMISSION: &str = "urn:ietf:params:jmap:submission";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub api_url: String,
    pub download_url: String,
    pub upload_url: String,
    pub capabilities: BTreeMap<String, Value>,
    pub primary_accounts: BTreeMap<String, String>,
}

/// The answers to the calls of a request: name, arguments, and the id of the call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    pub method_responses: Vec<(String, Value, String)>,
}

#[derive(Debug, Deserialize)]
pub struct Failure {
    #[serde(rename = "type")]
    pub kind: String,
    pub description: Option<String>,
    #[serde(rename = "existingId")]
    pub existing: Option<String>,
}

impl Failure {
    pub fn text(&self) -> String {
        match &self.description {
            Some(description) => format!("{}: {description}", self.kind),
            None => self.kind.clone(),
        }
    }

    /// Returns whether the change may still have happened.
    pub fn is_unclear(&self) -> bool {
        matches!(self.kind.as_str(), "serverFail" | "serverPartialFail")
    }
}

#[derive(Debug, Deserialize)]
pub struct Got<T> {
    #[serde(default)]
    pub state: String,
    pub list: Vec<T>,
}

#[derive(Debug, Deserialize)]
pub struct Queried {
    pub ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    pub created: Option<BTreeMap<String, Option<Value>>>,
    pub not_created: Option<BTreeMap<String, Failure>>,
    pub not_updated: Option<BTreeMap<String, Failure>>,
    pub not_destroyed: Option<BTreeMap<String, Failure>>,
}

impl Changed {
    /// Fails if one of the objects was not changed.
    pub fn succeeded(self) -> Result<()> {
        self.failure().map_or(Ok(()), |failure| Err(Error::Server(failure.text())))
    }

    pub fn failure(self) -> Option<Failure> {
        let lists = [self.not_created, self.not_updated, self.not_destroyed];
        lists.into_iter().flatten().find_map(|list| list.into_values().next())
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Uploaded {
    pub blob_id: String,
}

#[derive(Debug, Deserialize)]
pub struct Identity {
    pub id: String,
    #[serde(default)]
    pub email: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MailFolder {
    pub id: String,
    pub name: String,
    pub parent_id: Option<String>,
    pub role: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Person {
    pub name: Option<String>,
    pub email: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Email {
    pub id: String,
    pub blob_id: String,
    #[serde(default)]
    pub mailbox_ids: BTreeMap<String, bool>,
    #[serde(default)]
    pub keywords: BTreeMap<String, bool>,
    pub message_id: Option<Vec<String>>,
    pub from: Option<Vec<Person>>,
    pub to: Option<Vec<Person>>,
    pub subject: Option<String>,
    pub sent_at: Option<String>,
}

pub const EMAIL: [&str; 9] =
    ["id", "blobId", "mailboxIds", "keywords", "messageId", "from", "to", "subject", "sentAt"];

impl Email {
    /// Returns its name: its Message-ID, or the server's ID.
    pub fn name(&self) -> String {
        let id = self.message_id.iter().flatten().next();
        id.and_then(|id| searchable(id)).unwrap_or_else(|| self.fallback())
    }

    /// Names a message without a Message-ID that servers find.
    pub fn fallback(&self) -> String {
        format!("jmap:{}", self.id)
    }

    pub fn is_marked(&self) -> bool {
        self.keywords.get(SENDING).copied().unwrap_or(false)
    }

    pub fn summary(&self, folder: &str) -> Summary {
        let people = |list: &Option<Vec<Person>>| {
            list.iter().flatten().map(Person::text).collect::<Vec<String>>()
        };
        Summary {
            id: self.name(),
            folder: folder.to_owned(),
            from: people(&self.from).join(", "),
            to: people(&self.to),
            subject: self.subject.clone().unwrap_or_default(),
            date: self.sent_at.clone(),
            unread: !self.keywords.get("$seen").copied().unwrap_or(false),
        }
    }
}

impl Person {
    fn text(&self) -> String {
        match &self.name {
            Some(name) if !name.is_empty() => format!("{name} <{}>", self.email),
            _ => self.email.clone(),
        }
    }
}
