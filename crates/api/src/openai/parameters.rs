//! The parameters of OpenAI's requests: effective ones, superfluous ones, and rejected ones.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::http::{Forms, Input};

/// Parameters that change no answer: they only help OpenAI to cache and to find abuse.
const HINTS: [&str; 4] =
    ["user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"];

/// Parameters without an effect, with the values that request the default behavior.
static REFUSED: LazyLock<HashMap<String, Vec<Value>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("parameters.json")).unwrap_or_default());

/// Checks that every parameter has an effect, as those of the type `T` have, or requests the default.
fn check<T: JsonSchema>(given: &Map<String, Value>) -> Result<(), Refusal> {
    let schema = schemars::schema_for!(T);
    let done = |name| schema.get("properties").is_some_and(|fields| fields.get(name).is_some());
    for (name, value) in given {
        if value.is_null() || done(name) || HINTS.contains(&name.as_str()) {
            continue;
        }
        let Some(accepted) = REFUSED.get(name) else {
            let why = format!("Unknown parameter: '{name}'.");
            return Err(Refusal::invalid(why).about(name, "unknown_parameter"));
        };
        if accepted.iter().any(|one| same(one, value)) {
            continue;
        }
        if accepted.iter().all(|one| one.is_array() || one.is_object()) {
            let why = format!("Unsupported parameter: '{name}' is not supported; leave it out.");
            return Err(Refusal::invalid(why).about(name, "unsupported_parameter"));
        }
        let accepted: Vec<String> = accepted.iter().map(Value::to_string).collect();
        let why = format!(
            "Unsupported value: '{name}' is not supported with {value}; leave it out, or send {}.",
            accepted.join(" or ")
        );
        return Err(Refusal::invalid(why).about(name, "unsupported_value"));
    }
    Ok(())
}

/// Compares values, numbers by their value; an object of nulls equals an empty one.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Object(one), Value::Object(other)) if one.is_empty() => {
            other.values().all(Value::is_null)
        }
        _ => one == other,
    }
}

pub(super) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + JsonSchema> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        if !crate::http::is_json(request.headers()) {
            let why = "the body must be sent as application/json";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| Refusal::new(error.status(), error.body_text()))?;
        let read = crate::http::json(&bytes).map_err(Refusal::invalid)?;
        let Value::Object(given) = &read else {
            return Err(Refusal::invalid("the body must be an object"));
        };
        check::<T>(given)?;
        serde_path_to_error::deserialize(read).map(Self).map_err(|error| {
            let place = error.path().to_string();
            Refusal::invalid(format!("{place}: {}", error.inner())).about(place, "invalid_type")
        })
    }
}

impl<T: JsonSchema> Input for Body<T> {
    fn describe(forms: &mut Forms, route: &str) {
        forms.body::<T>(route);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its form counts")]
    struct Known {
        model: Option<String>,
        messages: Vec<Value>,
    }

    fn refused(given: &Value) -> Option<Value> {
        let refusal = check::<Known>(given.as_object().unwrap()).err()?;
        Some(refusal.shown()["error"].clone())
    }

    /// X8
    #[test]
    fn a_parameter_without_an_effect_is_refused_by_name_unless_it_asks_for_no_effect() {
        for none in [
            json!({ "model": "swarm", "messages": [], "user": "u1" }),
            json!({ "temperature": 1.0, "top_p": 1, "stop": null, "n": 1, "tools": [], "logit_bias": {} }),
            json!({ "reasoning": { "effort": null, "summary": null }, "service_tier": "auto" }),
        ] {
            assert_eq!(refused(&none), None, "{none}");
        }
        let tool = json!([{ "type": "function" }]);
        for (name, value, code) in [
            ("tools", tool.clone(), "unsupported_parameter"),
            ("functions", tool, "unsupported_parameter"),
            ("stop", json!("\n"), "unsupported_parameter"),
            ("max_tokens", json!(5), "unsupported_parameter"),
            ("max_completion_tokens", json!(5), "unsupported_parameter"),
            ("seed", json!(1), "unsupported_parameter"),
            ("logit_bias", json!({ "5": 1 }), "unsupported_parameter"),
            ("n", json!(2), "unsupported_value"),
            ("temperature", json!(0.2), "unsupported_value"),
            ("tool_choice", json!("required"), "unsupported_value"),
            ("logprobs", json!(true), "unsupported_value"),
            ("colour", json!("red"), "unknown_parameter"),
        ] {
            let error = refused(&json!({ name: value })).unwrap();
            assert_eq!((&error["param"], &error["code"]), (&json!(name), &json!(code)), "{error}");
            assert!(error["message"].as_str().unwrap().contains(name), "{error}");
        }
    }
}
