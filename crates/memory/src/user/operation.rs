//! A model's reading of a user's words: the schema `user_memory`.

use perihelion_database::stored_words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operations of one answer that are done; more is no memory but a transcript.
const MOST: usize = 20;

const KEY_CHARS: usize = 80;

const VALUE_CHARS: usize = 500;

/// What is to be remembered or forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operations {
    #[schemars(length(max = MOST))]
    pub operations: Vec<Operation>,
}

/// One thing to remember or forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    pub op: Verb,
    pub kind: EntryKind,
    #[schemars(length(max = KEY_CHARS))]
    pub key: String,
    #[schemars(length(max = VALUE_CHARS))]
    pub value: Option<String>,
}

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Set,
    Forget,
}

stored_words! {
    /// What an entry says.
    #[derive(Default, JsonSchema)]
    EntryKind {
        /// What is so: name, company, title, recent projects.
        #[default]
        Fact = "fact",
        /// What is wished: tone, detail, language.
        Preference = "preference",
    }
}

impl Operations {
    /// Returns the valid ones: with a key, a value if one is needed, and of the size of a fact.
    pub(super) fn sensible(&self) -> impl Iterator<Item = &Operation> {
        let fits = |operation: &&Operation| {
            let key = operation.key.trim();
            let value = operation.value.as_deref().unwrap_or_default().trim();
            let has_value = !value.is_empty() && value.chars().count() <= VALUE_CHARS;
            !normal_key(key).is_empty()
                && key.chars().count() <= KEY_CHARS
                && (has_value || operation.op == Verb::Forget)
        };
        self.operations.iter().filter(fits).take(MOST)
    }
}

/// Returns the form in which keys are compared: `Company name` and `company_name` are one.
pub(super) fn normal_key(key: &str) -> String {
    let words = key.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let key = words.collect::<Vec<_>>().join("_").to_lowercase();
    key.chars().take(KEY_CHARS).collect()
}

pub(super) fn normal_value(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(VALUE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_according_to_the_schema() {
        let text = r#"{"operations": [
            {"op": "set", "kind": "fact", "key": "company", "value": "Acme"},
            {"op": "forget", "kind": "preference", "key": "tone", "value": null},
            {"op": "set", "kind": "fact", "key": " ", "value": "x"},
            {"op": "set", "kind": "fact", "key": "🎂", "value": "3 May"},
            {"op": "forget", "kind": "fact", "key": "-", "value": null},
            {"op": "set", "kind": "fact", "key": "empty", "value": null}]}"#;
        let operations: Operations = serde_json::from_str(text).unwrap();
        let keys: Vec<&str> = operations.sensible().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, ["company", "tone"]);
    }

    #[test]
    fn keys_are_equal_in_every_spelling() {
        for key in ["Company name", "company_name", "company-name", " COMPANY  NAME "] {
            assert_eq!(normal_key(key), "company_name");
        }
        assert_eq!(normal_key("имя"), "имя");
    }
}
