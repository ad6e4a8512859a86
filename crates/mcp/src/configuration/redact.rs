//! Keeps the secrets of a server's configuration out of all output of this module.

use std::{collections::VecDeque, sync::Arc};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use parking_lot::Mutex;
use serde_json::Value;

use crate::types::text;

pub(crate) const REDACTED: &str = "[redacted]";
/// Shorter values would blot out ordinary words.
const SHORTEST: usize = 6;
/// Shorter ones, encoded, would blot out ordinary words.
const SHORTEST_ENCODED: usize = 8;
/// A secret and how else it may be written.
const FORMS: usize = 10;
/// Secrets of the process that are removed from the log; those of a few hundred servers.
const KNOWN: usize = 10_000;
/// Tokens are renewed, and older ones can still appear.
const LEARNT: usize = 16;

/// The secret values of one server's configuration, and those that were obtained for it since.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    written: Vec<String>,
    /// Shared by all copies.
    learnt: Arc<Mutex<VecDeque<String>>>,
}

/// The latter are not part of the configuration.
impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Secrets {
    /// Notes a secret; values under six bytes are too common to be searched for and are skipped.
    ///
    /// In a secret with several lines, such as a key, each line is also a secret, because lines can appear separately.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        for line in value.lines().filter(|line| *line != value) {
            self.add(line);
        }
        if value.len() >= SHORTEST && !self.written.iter().any(|known| known == value) {
            self.written.push(value.to_owned());
            self.written.extend(encoded(value));
            know(&self.written);
            // A secret that contains another one must be replaced first.
            self.written.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    /// Notes a secret that was got while the server is in use, for all copies; the oldest ones are forgotten.
    pub fn learn(&self, value: &str) {
        let mut learnt = self.learnt.lock();
        if value.len() >= SHORTEST && !learnt.iter().any(|known| known == value) {
            let forms: Vec<String> =
                std::iter::once(value.to_owned()).chain(encoded(value)).collect();
            know(&forms);
            learnt.extend(forms);
            while learnt.len() > LEARNT * FORMS {
                learnt.pop_front();
            }
        }
    }

    pub fn redact(&self, text: &str) -> String {
        let learnt = self.learnt.lock();
        self.written.iter().chain(learnt.iter()).fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret, REDACTED) } else { text }
        })
    }

    /// As [`Secrets::redact`] for the beginning of a longer text: a possible beginning of a secret at its end is
    /// removed.
    pub fn redact_beginning(&self, text: &str) -> String {
        let learnt = self.learnt.lock().clone();
        let secrets: Vec<&String> = self.written.iter().chain(&learnt).collect();
        let begins = |secret: &&String| {
            let ends = secret.char_indices().map(|(at, _)| at).rev();
            ends.filter(|at| *at > 0).find(|at| text.ends_with(&secret[..*at])).unwrap_or(0)
        };
        let mut end = text.len() - secrets.iter().map(begins).max().unwrap_or(0);
        let cut = |end: usize| {
            let found = |secret: &&String| {
                let mut found = text.match_indices(secret.as_str()).map(|(at, _)| at);
                found.find(|at| *at < end && end < at + secret.len())
            };
            secrets.iter().find_map(found)
        };
        // Another secret that stands there whole is not to be cut in turn.
        while let Some(begin) = cut(end) {
            end = begin;
        }
        self.redact(&text[..end])
    }

    pub fn redact_json(&self, value: Value) -> Value {
        text::map_texts(value, &|text: &str| self.redact(text))
    }
}

/// Secrets of all servers of the process, the newest last.
static ALL: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

fn know(secrets: &[String]) {
    let mut all = ALL.lock();
    for secret in secrets {
        if !all.contains(secret) {
            all.push_back(secret.clone());
        }
    }
    while all.len() > KNOWN {
        all.pop_front();
    }
}

/// Replaces the secrets of all servers of this process in a log line, because libraries can log any text.
pub fn redact_log(line: &str) -> String {
    let all = ALL.lock();
    let mut found: Vec<&String> =
        all.iter().filter(|secret| line.contains(secret.as_str())).collect();
    found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    found.into_iter().fold(line.to_owned(), |text, secret| text.replace(secret, REDACTED))
}

/// Returns a secret's forms in hexadecimal and in base64, at any position of an encoded text.
fn encoded(secret: &str) -> Vec<String> {
    if secret.len() < SHORTEST_ENCODED {
        return Vec::new();
    }
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![hex.to_uppercase(), hex];
    for offset in 0..3 {
        let mut bytes = vec![0; offset];
        bytes.extend_from_slice(secret.as_bytes());
        let text = STANDARD_NO_PAD.encode(&bytes);
        // The first and the last letters are also made of what stands beside it.
        let first = [0, 2, 3][offset];
        let is_whole = bytes.len() % 3 == 0;
        let last = text.len() - usize::from(!is_whole);
        let inner = text[first..last].to_owned();
        let for_urls = inner.replace('+', "-").replace('/', "_");
        if for_urls != inner {
            forms.push(for_urls);
        }
        forms.push(inner);
    }
    forms
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.written.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_longer_secret_is_replaced_first_and_copies_learn_together() {
        let mut secrets = Secrets::default();
        for value in ["abcdef", "abcdef-and-more", "on"] {
            secrets.add(value);
        }
        assert_eq!(secrets.redact("abcdef-and-more on abcdef"), "[redacted] on [redacted]");
        secrets.add("first-line\nsecond-line");
        assert_eq!(secrets.redact("second-line, first-line"), "[redacted], [redacted]");
        assert_eq!(secrets.redact_beginning("on: abcdef-an"), "on: ");
        secrets.add("keys-of-abc");
        assert_eq!(secrets.redact_beginning("on: keys-of-abc"), "on: ");
        assert_eq!(secrets.redact_beginning("on: second-lin"), "on: ");
        assert_eq!(secrets.redact_beginning("on: second-line, uh!"), "on: [redacted], uh!");
        // "user:pass-of-nobody" and the like: wherever in the encoded text it stands.
        secrets.add("pass-of-nobody");
        for before in ["", "u", "us", "user:"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}pass-of-nobody, and more"));
            assert!(secrets.redact(&encoded).contains("[redacted]"), "{before}");
        }
        assert_eq!(secrets.redact("706173732d6f662d6e6f626f6479"), "[redacted]");
        assert_eq!(redact_log("a pass-of-nobody"), "a [redacted]");
        secrets.clone().learn("token-of-today");
        assert_eq!(secrets.redact("a token-of-today"), "a [redacted]");
        assert_eq!(
            secrets.redact_json(json!({"a": ["x abcdef", 1]})),
            json!({"a": ["x [redacted]", 1]})
        );
    }
}
