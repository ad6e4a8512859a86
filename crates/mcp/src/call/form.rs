//! Forms that servers want filled in: which are refused, and whether an answer fits.

use serde_json::{Map, Value};

use crate::types::schema::{self, Mismatch, Unusable};

/// Ends of words in the name or title of a field that ask for what must not pass through a form.
const SECRETS: &str = "password,passwd,passphrase,passcode,secret,token,credential,cvv,cvc,apikey,api key,accesskey,\
     access key,privatekey,private key,cardnumber,card number,seedphrase,seed phrase";

/// Returns the name of a field that asks for a secret: the protocol has an address visited for these.
pub(super) fn secret_field(requested_schema: &Value) -> Option<&str> {
    let fields = requested_schema.get("properties").and_then(Value::as_object)?;
    let asks = |(name, field): &(&String, &Value)| {
        let title = field.get("title").and_then(Value::as_str).unwrap_or_default();
        let is_password = field.get("format").and_then(Value::as_str) == Some("password");
        let is_text = field.get("type").is_none_or(|kind| kind == "string");
        is_password || names_a_secret(name, is_text) || names_a_secret(title, is_text)
    };
    fields.iter().find(asks).map(|(name, _)| name.as_str())
}

/// A number of tokens is no token.
fn names_a_secret(name: &str, is_text: bool) -> bool {
    let mut words = String::new();
    for letter in name.chars() {
        let begins = letter.is_uppercase() && words.ends_with(char::is_lowercase);
        words.extend(begins.then_some(' '));
        words.push(if letter.is_alphabetic() { letter } else { ' ' });
    }
    let words = words.to_lowercase() + " ";
    let mut secrets = SECRETS.split(',').filter(|secret| is_text || *secret != "token");
    secrets.any(|secret| ["", "s"].iter().any(|end| words.contains(&format!("{secret}{end} "))))
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum FormError {
    #[error("the answer to a form is a JSON object with a value per field")]
    NoObject,
    #[error("the form has no field named {field}; its fields are: {}", known.join(", "))]
    NoField { field: String, known: Vec<String> },
    #[error("the server's form cannot be used: {0}")]
    Form(#[from] Unusable),
    /// The complaints, each with the place it is about.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Completes an answer by the form's defaults and checks that it fits.
pub fn fill_form(requested_schema: &Value, content: Value) -> Result<Value, FormError> {
    let Value::Object(mut content) = content else { return Err(FormError::NoObject) };
    let none = Map::new();
    let fields = requested_schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for (name, field) in fields {
        if let Some(default) = field.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
    if let Some(stray) = content.keys().find(|name| !fields.contains_key(*name)) {
        let known = fields.keys().cloned().collect();
        return Err(FormError::NoField { field: stray.clone(), known });
    }
    let content = Value::Object(content);
    schema::compile_form(requested_schema)?.check(&content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_completed_by_defaults_and_checked_field_by_field() {
        let form = json!({
            "type": "object", "required": ["name", "mail"],
            "properties": {
                "name": { "type": "string", "minLength": 2 },
                "mail": { "type": "string", "format": "email" },
                "color": { "type": "string", "enum": ["red", "blue"], "default": "blue" },
            },
        });
        let filled = fill_form(&form, json!({ "name": "Ann", "mail": "ann@example.org" })).unwrap();
        assert_eq!(filled, json!({ "name": "Ann", "mail": "ann@example.org", "color": "blue" }));
        for (content, complaint) in [
            (json!({ "name": "A", "mail": "ann@example.org" }), "at /name"),
            (json!({ "name": "Ann" }), "\"mail\""),
            (json!({ "name": "Ann", "mail": "nobody" }), "at /mail"),
            (json!({ "name": "Ann", "mail": "a@b.org", "colour": "red" }), "named colour"),
            (json!("Ann"), "JSON object"),
        ] {
            let message = fill_form(&form, content).unwrap_err().to_string();
            assert!(message.contains(complaint), "{message}");
        }
    }

    #[test]
    fn fields_for_secrets_are_found_by_name_title_and_format() {
        let field = |name: &str, field: Value| json!({ "properties": { name: field } });
        for (name, shape) in [
            ("api_key", json!({ "type": "string" })),
            ("accessTokens", json!({})),
            ("userpassword", json!({ "type": "string" })),
            ("Password2", json!({ "type": "string" })),
            ("value", json!({ "type": "string", "title": "Access token" })),
            ("value", json!({ "type": "string", "format": "password" })),
        ] {
            assert_eq!(secret_field(&field(name, shape)), Some(name));
        }
        for (name, shape) in [
            ("key", json!({ "title": "Sort key" })),
            ("max_tokens", json!({ "type": "integer", "title": "Number of tokens" })),
            ("budget", json!({ "type": "number", "title": "Token budget" })),
            ("secretary", json!({ "type": "string" })),
        ] {
            assert_eq!(secret_field(&field(name, shape)), None, "{name}");
        }
        assert_eq!(secret_field(&json!({})), None);
    }
}
