//! Keeps the secrets of a server's configuration out of everything that leaves this room.

use serde_json::Value;

/// Shorter values would blot out ordinary words.
const SHORTEST: usize = 6;

/// The secret values of one server's configuration.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Notes a secret; values under six bytes are too common to be searched for and are skipped.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() >= SHORTEST && !self.0.iter().any(|known| known == value) {
            self.0.push(value.to_owned());
            // A secret that contains another one must be replaced first.
            self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    /// Replaces every secret in a text by `[redacted]`.
    pub fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret, "[redacted]") } else { text }
        })
    }

    /// Replaces every secret in the strings and keys of a JSON value.
    pub fn redact_json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact(&text)),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.redact_json(item)).collect())
            }
            Value::Object(map) => Value::Object(
                map.into_iter()
                    .map(|(key, item)| (self.redact(&key), self.redact_json(item)))
                    .collect(),
            ),
            other => other,
        }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_longer_secret_is_replaced_first_and_short_values_are_left_alone() {
        let mut secrets = Secrets::default();
        for value in ["abcdef", "abcdef-and-more", "on"] {
            secrets.add(value);
        }
        assert_eq!(secrets.redact("abcdef-and-more on abcdef"), "[redacted] on [redacted]");
        assert_eq!(
            secrets.redact_json(json!({"a": ["x abcdef", 1]})),
            json!({"a": ["x [redacted]", 1]})
        );
    }
}
