//! Bounds the texts and lists of a JSON answer, so that the longest valid one fits into the model's output limit.
//!
//! Where the endpoint enforces the schema, an answer then ends instead of being cut off. It runs when a request leaves,
//! below the recording, so a thread can be replayed with any limit.

use serde_json::{Value, json};

/// Parts of a token, the unit of all costs here.
const TOKEN: usize = 6;

/// The cost of a character of names and punctuation.
const OF_FORM: usize = TOKEN / 3;

/// Characters of punctuation and space around each field, list item or text.
const PUNCTUATION: usize = 8;

/// Digits of a number, each a token for many models.
const DIGITS: usize = 12;

/// The longest text that llama.cpp's grammars can bound.
const MOST: usize = 1_900;

/// The shortest bound of a text; an answer in which shorter ones are needed is not bounded.
const LEAST: usize = 40;

/// Lengths of texts for which lists give way, from ample to tight.
const LENGTHS: [usize; 3] = [1_000, 300, 100];

/// Most items of a list whose texts have the wanted length.
const ITEMS: usize = 64;

#[derive(Clone, Copy)]
struct Bounds {
    chars: usize,
    items: usize,
    /// The cost of a character of a text.
    of_char: usize,
}

/// Returns a schema whose longest answer has `tokens` tokens, if a token of a text has `chars_per_token` characters.
///
/// Own bounds of the schema stay where they are narrower. Texts without any stay free if they may be very long.
pub(super) fn fitted(schema: &Value, tokens: u32, chars_per_token: usize) -> Value {
    let of_char = TOKEN / chars_per_token.clamp(1, TOKEN);
    let most = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(TOKEN);
    let fits = |chars, items| Bounds { chars, items, of_char }.cost(schema) <= most;
    let wanted =
        LENGTHS.into_iter().find_map(|chars| (1..=ITEMS).rev().find(|items| fits(chars, *items)));
    let items = wanted.unwrap_or(1);
    let Some(chars) = (LEAST..=MOST).rev().find(|chars| fits(*chars, items)) else {
        return schema.clone();
    };
    let mut bounded = schema.clone();
    Bounds { chars, items, of_char }.apply(&mut bounded);
    bounded
}

/// Returns whether a text of an answer is just as long as it may be by `bounded`, though `schema` does not bound it.
///
/// The endpoint probably ended such a text there: a statement or a program is then only a part. A longer one comes from
/// an endpoint that does not enforce the schema.
pub(super) fn is_filled(schema: &Value, bounded: &Value, answer: &Value) -> bool {
    match answer {
        Value::String(text) => {
            let most = bounded["maxLength"].as_u64().filter(|_| schema["maxLength"].is_null());
            most.and_then(|most| usize::try_from(most).ok())
                .is_some_and(|most| text.chars().count() == most)
        }
        Value::Array(items) => {
            items.iter().any(|item| is_filled(&schema["items"], &bounded["items"], item))
        }
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            is_filled(&schema["properties"][name], &bounded["properties"][name], value)
        }),
        _ => false,
    }
}

impl Bounds {
    /// Returns the cost of the longest answer.
    fn cost(self, schema: &Value) -> usize {
        let form = |chars: usize| (chars + PUNCTUATION) * OF_FORM;
        if let Some(values) = schema["enum"].as_array() {
            return values.iter().map(|value| form(value.to_string().len())).max().unwrap_or(0);
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            return alternatives.iter().map(|one| self.cost(one)).max().unwrap_or(0);
        }
        match kind(schema) {
            "string" => form(0) + bound(schema, "maxLength", self.chars) * self.of_char,
            "array" => {
                let item = self.cost(&schema["items"]).saturating_add(form(0));
                item.saturating_mul(bound(schema, "maxItems", self.items)).saturating_add(form(0))
            }
            "object" => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                let cost = |(name, field): (&String, &Value)| {
                    self.cost(field).saturating_add(form(name.len()))
                };
                fields.map(cost).fold(form(0), usize::saturating_add)
            }
            "integer" | "number" => DIGITS * TOKEN,
            "boolean" | "null" => form(0),
            // Of any length, such as a reference to itself.
            _ => usize::MAX,
        }
    }

    fn apply(self, schema: &mut Value) {
        let chars = bound(schema, "maxLength", self.chars);
        let items = bound(schema, "maxItems", self.items);
        let is_free_text = kind(schema) == "string" && schema["enum"].is_null();
        let is_list = kind(schema) == "array";
        let Some(keywords) = schema.as_object_mut() else { return };
        if is_free_text && chars < MOST {
            keywords.insert("maxLength".to_owned(), json!(chars));
        }
        if is_list {
            keywords.insert("maxItems".to_owned(), json!(items));
        }
        for (keyword, part) in keywords {
            match (keyword.as_str(), part) {
                ("anyOf", Value::Array(parts)) => parts.iter_mut().for_each(|one| self.apply(one)),
                ("properties", Value::Object(parts)) => {
                    parts.values_mut().for_each(|one| self.apply(one));
                }
                ("items", part) => self.apply(part),
                _ => {}
            }
        }
    }
}

/// Returns the type of a schema's values other than null.
fn kind(schema: &Value) -> &str {
    let listed = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let single = schema["type"].as_str();
    single.or_else(|| listed.into_iter().find(|kind| *kind != "null")).unwrap_or_default()
}

fn bound(schema: &Value, keyword: &str, most: usize) -> usize {
    let own = schema[keyword].as_u64().and_then(|own| usize::try_from(own).ok());
    own.map_or(most, |own| own.min(most))
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;
    use crate::strict_schema;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Draft {
        sql: String,
        other: Option<String>,
        #[schemars(length(max = 16), inner(length(max = 80)))]
        tables: Vec<String>,
        #[schemars(length(max = 200))]
        notes: String,
        parts: Option<Part>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Part {
        numbers: Vec<u32>,
        kind: Option<String>,
    }

    /// Returns the longest answer that a schema allows.
    fn longest(schema: &Value) -> Value {
        if let Some(parts) = schema["anyOf"].as_array() {
            return longest(&parts[0]);
        }
        let most = |keyword: &str| usize::try_from(schema[keyword].as_u64().unwrap()).unwrap();
        match kind(schema) {
            "string" => "7".repeat(most("maxLength")).into(),
            "array" => vec![longest(&schema["items"]); most("maxItems")].into(),
            "object" => {
                let fields = schema["properties"].as_object().unwrap().iter();
                fields.map(|(name, field)| (name.clone(), longest(field))).collect()
            }
            _ => 7.into(),
        }
    }

    #[test]
    fn the_longest_valid_answer_fits_into_the_limit() {
        let schema = strict_schema::<Draft>();
        for tokens in [300, 500, 1_000] {
            let bounded = fitted(&schema, tokens, 1);
            let answer = longest(&bounded);
            assert!(jsonschema::is_valid(&schema, &answer), "{answer}");
            // A token of digits has one character.
            let digits = answer.to_string().chars().filter(char::is_ascii_digit).count();
            assert!(digits < tokens as usize, "{tokens}: {answer}");
            assert!(is_filled(&schema, &bounded, &answer), "{answer}");
        }
        let narrow = fitted(&schema, 300, 1);
        assert!(narrow["properties"]["sql"]["maxLength"].as_u64() < Some(80), "{narrow}");
        let wide = fitted(&schema, 8_000, 3);
        assert_eq!(wide["properties"]["sql"], schema["properties"]["sql"]);
        assert_eq!(wide["properties"]["notes"]["maxLength"], 200);
        assert_eq!(wide["properties"]["tables"]["maxItems"], 16);
        assert_eq!(fitted(&schema, 20, 3), *schema, "no answer fits");
    }

    #[test]
    fn a_text_that_its_author_bounds_may_be_as_long() {
        let schema = strict_schema::<Draft>();
        let bounded = fitted(&schema, 300, 2);
        let most = |name: &str| {
            let most = bounded["properties"][name]["maxLength"].as_u64().unwrap();
            "a".repeat(usize::try_from(most).unwrap())
        };
        let answer = |sql: &str| json!({ "sql": sql, "other": null, "tables": [], "notes": most("notes"), "parts": null });
        assert!(!is_filled(&schema, &bounded, &answer("SELECT 1")));
        assert!(is_filled(&schema, &bounded, &answer(&most("sql"))));
    }

    #[test]
    fn an_answer_of_any_depth_is_not_bounded() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema matters")]
        struct Tree {
            branches: Vec<Tree>,
        }
        let schema = strict_schema::<Tree>();
        assert_eq!(fitted(&schema, 300, 3), *schema);
    }
}
