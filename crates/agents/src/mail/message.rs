//! A message as the server's tools give it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A message of a list or a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mail {
    pub id: String,
    pub folder: String,
    pub from: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub bcc: Vec<String>,
    pub subject: String,
    pub date: Option<String>,
    pub text: String,
    pub attachments: Vec<String>,
}

/// What a list or a thread is read from.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Reading {
    pub messages: Vec<Mail>,
}

impl Reading {
    /// Reads what a tool gave; another server's answer without data is no message.
    pub fn of(data: Option<Value>) -> Vec<Mail> {
        let read = data.and_then(|data| serde_json::from_value::<Self>(data).ok());
        read.unwrap_or_default().messages
    }
}

impl Mail {
    /// Returns all of a draft that the person who approves its sending has to see.
    pub fn shown(&self) -> Value {
        json!({
            "from": self.from,
            "to": self.to,
            "cc": self.cc,
            "bcc": self.bcc,
            "subject": self.subject,
            "text": self.text,
            "attachments": self.attachments,
        })
    }

    /// Returns who it goes to.
    pub fn recipients(&self) -> String {
        let all = self.to.iter().chain(&self.cc).chain(&self.bcc);
        all.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}
