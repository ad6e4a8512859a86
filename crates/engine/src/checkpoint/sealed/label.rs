//! The label that a thread stores in place of its title: the title, and the origin of its history.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::super::{Error, Result, ThreadInfo, encoded::from_hex};
use super::keyring::Keyring;
use super::seal::{SealContext, key_name, open, seal};
use crate::ids::ThreadId;

/// Begins a text that is encrypted.
const MARK: &str = "perihelion-sealed:";

/// The facts about a thread that only the owner of the key knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Label {
    pub title: Option<String>,
    /// The threads whose steps it shares, each with the last of them; they may be gone by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<(ThreadId, u64)>,
}

impl Label {
    /// Returns whether a step or snapshot of another thread can be part of this one's history.
    pub(super) fn shares(&self, owner: &[u8; 16], seq: u64) -> bool {
        self.origins.iter().any(|(thread, upto)| thread.0.as_bytes() == owner && seq <= *upto)
    }

    /// Returns whether any step up to `seq` may be another thread's.
    pub(super) fn shares_any(&self, seq: u64) -> bool {
        self.origins.iter().any(|(_, upto)| seq <= *upto)
    }

    pub(super) fn of_fork(&self, source: ThreadId, at: u64, title: Option<String>) -> Self {
        let older = self.origins.iter().map(|(thread, upto)| (*thread, at.min(*upto)));
        Self { title, origins: std::iter::once((source, at)).chain(older).collect() }
    }
}

pub(super) fn seal_label(keys: &Keyring, thread: ThreadId, label: &Label) -> Result<String> {
    let json = serde_json::to_vec(label).map_err(Error::Encode)?;
    seal_text(keys, thread, "label", json)
}

/// Reads a thread's label; `None` where its title is a plain one.
pub(super) fn read_label(keys: &Keyring, stored: &ThreadInfo) -> Result<Option<Label>> {
    let Some(text) = stored.title.as_deref().filter(|text| text.starts_with(MARK)) else {
        return Ok(None);
    };
    let json = open_text(keys, stored.id, "label", text)?;
    let damaged = |error: serde_json::Error| Error::damaged(error);
    serde_json::from_slice(&json).map_err(damaged).map(Some)
}

pub(super) fn seal_error(keys: &Keyring, thread: ThreadId, error: &str) -> Result<String> {
    seal_text(keys, thread, "error", error.as_bytes().to_vec())
}

/// Shows a thread to its owner; a text that cannot be read is replaced by the reason, and the rest stays visible.
pub(super) fn open_info(keys: &Keyring, mut info: ThreadInfo) -> ThreadInfo {
    info.title = match read_label(keys, &info) {
        Ok(Some(label)) => label.title,
        Ok(None) => info.title,
        Err(_) => info.title.as_deref().map(unreadable),
    };
    if let Some(text) = info.error.as_mut().filter(|text| text.starts_with(MARK)) {
        *text = match open_text(keys, info.id, "error", text) {
            Ok(plain) => String::from_utf8_lossy(&plain).into_owned(),
            Err(_) => unreadable(text),
        };
    }
    info
}

/// Returns a stored text for display: an encrypted text is replaced by a note.
pub(in super::super) fn shown(text: &str) -> Cow<'_, str> {
    if text.starts_with(MARK) { Cow::Owned(unreadable(text)) } else { Cow::Borrowed(text) }
}

/// Returns the name of the key of an encrypted title.
pub(super) fn key_of(stored: &ThreadInfo) -> Option<String> {
    stored.title.as_deref().filter(|text| text.starts_with(MARK)).map(key_of_text)
}

fn unreadable(text: &str) -> String {
    format!("(encrypted with the key {})", key_of_text(text))
}

fn key_of_text(text: &str) -> String {
    let digits = text.strip_prefix(MARK).unwrap_or_default();
    key_name(&hex::decode(digits).unwrap_or_default())
}

fn seal_text(keys: &Keyring, thread: ThreadId, kind: &str, plain: Vec<u8>) -> Result<String> {
    let sealed = seal(keys, *thread.0.as_bytes(), &SealContext::new(kind, &[]), plain)?;
    Ok(format!("{MARK}{}", hex::encode(&sealed)))
}

fn open_text(keys: &Keyring, thread: ThreadId, kind: &str, text: &str) -> Result<Vec<u8>> {
    let digits = text.strip_prefix(MARK).unwrap_or_default();
    let sealed = from_hex(digits)?;
    let place = SealContext::new(kind, &[]);
    let (plain, owner) = open(keys, &place, &sealed, thread, || format!("the {kind}"))?;
    if owner == *thread.0.as_bytes() {
        Ok(plain)
    } else {
        Err(Error::Forged { thread, what: format!("the {kind}") })
    }
}
