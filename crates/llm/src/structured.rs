//! Requests JSON of a given type, and repeats the request if the answer is invalid.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::prompts::{self, clip, escape};
use super::schema::{compiled, strict_schema, takes, unbounded};
use super::{ChatMessage, ChatModel, ChatRequest, Error, OutputFormat, Usage};

/// Total requests to a model: one, and two more with the problem.
const ATTEMPTS: u32 = 3;

/// Characters of a bad answer that are shown back to the model.
const SHOWN_CHARS: usize = 8_000;

/// Problems of one answer that are named; more would not help.
const SHOWN_PROBLEMS: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub struct Structured<T> {
    pub value: T,
    /// Tokens of all attempts together.
    pub usage: Usage,
    /// 1 when the first answer was good.
    pub attempts: u32,
}

/// Requests an answer of type `T` under the schema name `name`, and repairs an invalid one.
///
/// The answer is validated against the schema that was sent, except for the lengths of texts and lists. A bad one is
/// shown to the model with its problems, at most twice. Code fences, reasoning and prose around the JSON are tolerated.
///
/// # Errors
/// [`Error::Invalid`] when no attempt was valid; otherwise the model's own error.
pub async fn ask<T: JsonSchema + DeserializeOwned + 'static>(
    model: &dyn ChatModel,
    request: ChatRequest,
    name: &str,
) -> Result<Structured<T>, Error> {
    ask_checked(model, request, name, Ok).await
}

/// Does the same for an answer with further conditions: the problems that `check` finds are sent back as well.
pub async fn ask_checked<T: JsonSchema + DeserializeOwned + 'static>(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    name: &str,
    check: impl Fn(T) -> Result<T, Vec<String>> + Send + Sync,
) -> Result<Structured<T>, Error> {
    request.manner.is_bounded = true;
    let schema = strict_schema::<T>();
    // A long text is no reason to ask again.
    let accepted = unbounded(Value::clone(&schema));
    ask_by(model, request, name, (&schema, &accepted), check).await
}

/// Asks under a schema that is narrower than what is accepted: names that there are, bounded texts and lists.
///
/// An answer counts as valid by `accepted`, so that endpoints that enforce nothing are not asked again in vain.
pub async fn ask_as<T: DeserializeOwned>(
    model: &dyn ChatModel,
    request: ChatRequest,
    name: &str,
    sent: &Value,
    accepted: &Value,
) -> Result<Structured<T>, Error> {
    ask_by(model, request, name, (sent, accepted), Ok).await
}

/// Requests an object that is valid against a caller's schema, and repairs an invalid one.
pub async fn ask_value(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    name: &str,
    schema: &Value,
) -> Result<Structured<Value>, Error> {
    request.manner.is_foreign = true;
    ask_by(model, request, name, (schema, schema), Ok).await
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("it must describe an object: \"type\": \"object\"")]
    NotAnObject,
    /// It is no schema.
    #[error("{0}")]
    Invalid(String),
}

/// Checks that a schema can be asked for: it is one, and describes an object.
pub fn check_schema(schema: &Value) -> Result<(), SchemaError> {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => match compiled(schema) {
            Ok(_) => Ok(()),
            Err(error) => Err(SchemaError::Invalid(error.to_string())),
        },
        _ => Err(SchemaError::NotAnObject),
    }
}

/// Reads a text as JSON that is valid against a schema; `None` if it is not.
pub fn read_valid(schema: &Value, text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    compiled(schema).is_ok_and(|validator| validator.is_valid(&value)).then_some(value)
}

async fn ask_by<T: DeserializeOwned>(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    name: &str,
    (sent, accepted): (&Value, &Value),
    check: impl Fn(T) -> Result<T, Vec<String>> + Send + Sync,
) -> Result<Structured<T>, Error> {
    let role = request.role.as_str();
    let invalid =
        |attempts, problems| Error::Invalid { role, schema: name.to_owned(), attempts, problems };
    let validator = match compiled(accepted) {
        Ok(validator) => validator,
        Err(error) => return Err(invalid(0, format!("the schema itself is not valid: {error}"))),
    };
    request.format = Some(OutputFormat { name: name.to_owned(), schema: sent.clone() });
    let asked = request.messages.len();
    let escapes = prompts::escapes(&request);
    let is_foreign = request.manner.is_foreign;

    let mut usage = Usage::default();
    let mut attempts = 0;
    loop {
        let response = model.chat(&request, None).await?;
        usage += response.usage;
        attempts += 1;
        let read = read::<T>(&response.content, (accepted, &validator, is_foreign), &escapes);
        // A schema that the answer kept to is not explained once more.
        let broken = read.is_err().then_some(sent);
        let mut problems = match read.and_then(&check) {
            Ok(value) if !response.is_filled() => return Ok(Structured { value, usage, attempts }),
            Ok(_) => Vec::new(),
            Err(problems) => problems,
        };
        if let Some(cut) = response.cut() {
            problems.push(format!("the answer was cut off: {cut}"));
        }
        if attempts == ATTEMPTS {
            return Err(invalid(attempts, problems.join("; ")));
        }
        // After two failures the same request would probably fail again.
        request.manner.is_varied = attempts > 1;
        // Only the latest bad answer is shown, so that the request does not grow with each.
        request.messages.truncate(asked);
        // A cut answer would be repeated word for word, and cut again.
        if response.cut().is_some() {
            request.manner.is_watched = true;
            request.messages.push(ChatMessage::user(shorter(name)));
            continue;
        }
        request.messages.push(ChatMessage::assistant(shown(&response.content)));
        request.messages.push(ChatMessage::user(correction(name, &problems, broken)));
    }
}

fn shown(content: &str) -> String {
    if content.trim().is_empty() { "(empty)".to_owned() } else { clip(content, SHOWN_CHARS) }
}

fn shorter(name: &str) -> String {
    format!(
        "Your answer was cut off before its end. Answer with one `{name}` JSON object and nothing else: short texts, \
         short lists, no explanations."
    )
}

fn correction(name: &str, problems: &[String], schema: Option<&Value>) -> String {
    let list: String = problems.iter().map(|problem| format!("- {}\n", escape(problem))).collect();
    let schema = schema.map_or_else(String::new, |schema| {
        format!(" It must be valid against this JSON Schema:\n{schema}")
    });
    format!(
        "Your answer is not a valid `{name}`.\n<problems>\n{list}</problems>\nAnswer again with one JSON \
         object and nothing else, without code fences.{schema}"
    )
}

/// Reads the longest valid object in an answer, or describes the problem with the likeliest one.
fn read<T: DeserializeOwned>(
    content: &str,
    (schema, validator, is_foreign): (&Value, &jsonschema::Validator, bool),
    escapes: &[(&'static str, char)],
) -> Result<T, Vec<String>> {
    let mut objects = objects_in(content);
    for object in &mut objects {
        prompts::unescape(object, escapes);
        fill_nulls(object, schema, (schema, is_foreign));
    }
    // Prose before an answer may hold a short one, such as `{}`.
    let length = |object: &&Value| object.to_string().len();
    let valid = objects.iter().filter(|object| validator.is_valid(object));
    let object = valid.max_by_key(length).or_else(|| objects.iter().max_by_key(length));
    let Some(object) = object else {
        return Err(vec!["the answer contains no JSON object".to_owned()]);
    };
    let problems: Vec<String> = validator
        .iter_errors(object)
        .take(SHOWN_PROBLEMS)
        .map(|error| {
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { "the object" } else { path.as_str() };
            let text: String = error.to_string().chars().take(300).collect();
            format!("{place}: {text}")
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_json::from_value(object.clone()).map_err(|error| vec![error.to_string()])
}

/// Words that models write in place of null.
const NULLS: [&str; 7] = ["", "null", "none", "nil", "n/a", "na", "-"];

/// Returns whether a text stands for null, where a schema of ours permits both.
fn is_null(value: &Value, schema: &Value) -> bool {
    let word = value.as_str().map(|text| text.trim().to_lowercase());
    let is_choice = schema.get("enum").is_some();
    word.is_some_and(|word| NULLS.contains(&word.as_str()))
        && !is_choice
        && takes(schema, "null")
        && takes(schema, "string")
}

/// Adds the keys that an answer left out and that may be null, and writes null for words that mean it; the words of a
/// foreign schema's texts stay.
fn fill_nulls(value: &mut Value, schema: &Value, (root, is_foreign): (&Value, bool)) {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|path| root.pointer(path.trim_start_matches('#')));
    let schema = target.unwrap_or(schema);
    for alternative in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        fill_nulls(value, alternative, (root, is_foreign));
    }
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| fill_nulls(item, schema, (root, is_foreign)));
        }
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (key, schema) in properties.into_iter().flatten() {
                match fields.get_mut(key) {
                    Some(value) if !is_foreign && is_null(value, schema) => *value = Value::Null,
                    Some(value) => fill_nulls(value, schema, (root, is_foreign)),
                    None if takes(schema, "null") => {
                        fields.insert(key.clone(), Value::Null);
                    }
                    None => {}
                }
            }
        }
        _ => {}
    }
}

/// Finds the JSON objects in an answer, inside of other text.
fn objects_in(content: &str) -> Vec<Value> {
    /// Places at which an object is looked for; prose full of braces is not worth more.
    const PLACES: usize = 64;

    let mut rest = content;
    let mut found = Vec::new();
    for _ in 0..PLACES {
        let Some(start) = rest.find('{') else { break };
        rest = &rest[start..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value @ Value::Object(_))) => {
                rest = &rest[values.byte_offset()..];
                found.push(value);
            }
            _ => rest = &rest[1..],
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_found_within_fences_and_prose() {
        let object = json!({ "a": 1 });
        for text in [
            r#"{"a":1}"#,
            "```json\n{\"a\": 1}\n```",
            "Here it is {as asked}: {\"a\":1}. Anything else?",
            "\u{feff} {\"a\":1}",
        ] {
            assert_eq!(objects_in(text), std::slice::from_ref(&object), "{text}");
        }
        assert!(objects_in("no object, [1, 2], {broken").is_empty());
    }

    #[test]
    fn a_nullable_key_that_is_left_out_is_read_as_null_and_any_other_is_missed() {
        #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
        struct Inner {
            x: Option<u32>,
        }
        #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
        struct Outer {
            name: String,
            note: Option<String>,
            inner: Option<Inner>,
            list: Vec<Inner>,
        }
        let schema = strict_schema::<Outer>();
        let validator = compiled(&schema).unwrap();
        let read = |text| read::<Outer>(text, (&schema, &validator, false), &[]);
        let whole = Outer {
            name: "a".into(),
            note: None,
            inner: Some(Inner { x: None }),
            list: vec![Inner { x: None }],
        };
        assert_eq!(read(r#"{"name":"a","inner":{},"list":[{}]}"#), Ok(whole));
        assert!(read(r#"{"list":[]}"#).unwrap_err().iter().any(|p| p.contains("name")));
    }

    #[test]
    fn the_valid_object_is_chosen_among_several() {
        #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
        struct A {
            a: u32,
        }
        let schema = strict_schema::<A>();
        let validator = compiled(&schema).unwrap();
        let read = |text| read::<A>(text, (&schema, &validator, false), &[]);
        assert_eq!(read(r#"such as {"b":"x"}, so {"a":7}"#), Ok(A { a: 7 }));
        assert!(read(r#"{"a":"7"}"#).unwrap_err()[0].starts_with("/a: "));
        assert!(read(r#"{"b":7}"#).unwrap_err().iter().any(|p| p.contains("required")));
    }

    #[test]
    fn an_object_in_prose_before_the_answer_is_not_the_answer() {
        let schema = serde_json::json!({ "type": "object", "required": [] });
        let validator = compiled(&schema).unwrap();
        let read = |text| read::<Value>(text, (&schema, &validator, false), &[]);
        let answer = json!({ "agents": ["a"] });
        assert_eq!(read(r#"I call list with {} first. {"agents": ["a"]} So {}."#), Ok(answer));
    }

    #[test]
    fn a_word_for_null_is_null_where_a_text_of_our_own_may_be() {
        let text = json!({ "type": ["string", "null"] });
        let choice = json!({ "type": ["string", "null"], "enum": ["none", "all", null] });
        let schema = json!({ "properties": { "a": text, "b": choice, "c": { "type": "string" } } });
        let given = json!({ "a": " None", "b": "none", "c": "none" });
        for (is_foreign, a) in [(false, Value::Null), (true, json!(" None"))] {
            let mut read = given.clone();
            fill_nulls(&mut read, &schema, (&schema, is_foreign));
            assert_eq!(read, json!({ "a": a, "b": "none", "c": "none" }));
        }
    }

    #[test]
    fn parsing_stops_early_in_prose_full_of_braces() {
        assert!(objects_in(&"{".repeat(1_000_000)).is_empty());
    }
}
