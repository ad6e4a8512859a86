//! Ways to authenticate, and which an operation asks for.

use serde_json::Value;

use super::text;
use crate::{Scheme, SchemeKind, pointer::resolved};

pub fn schemes(document: &Value) -> Vec<Scheme> {
    let new = document.pointer("/components/securitySchemes");
    let found = new.or_else(|| document.get("securityDefinitions")).and_then(Value::as_object);
    found
        .into_iter()
        .flatten()
        .map(|(name, value)| Scheme { name: name.clone(), kind: kind(resolved(document, value)) })
        .collect()
}

/// Reads the requirements, as alternatives; an empty list requires no credentials.
pub fn requirements(value: Option<&Value>) -> Option<Vec<Vec<String>>> {
    let list = value?.as_array()?;
    Some(
        list.iter().filter_map(Value::as_object).map(|set| set.keys().cloned().collect()).collect(),
    )
}

fn kind(value: &Value) -> SchemeKind {
    let name = text(value, "name");
    match (
        text(value, "type").as_str(),
        text(value, "in").as_str(),
        text(value, "scheme").to_ascii_lowercase().as_str(),
    ) {
        ("apiKey", "query", _) => SchemeKind::KeyInQuery(name),
        ("apiKey", "cookie", _) => SchemeKind::KeyInCookie(name),
        ("apiKey", _, _) => SchemeKind::KeyInHeader(name),
        ("basic", _, _) | ("http", _, "basic") => SchemeKind::Basic,
        ("http", _, "bearer") => SchemeKind::Bearer,
        ("oauth2" | "openIdConnect", _, _) => SchemeKind::OAuth { token_url: token_url(value) },
        (other, _, _) => SchemeKind::Other(other.to_owned()),
    }
}

fn token_url(value: &Value) -> Option<String> {
    let old = (text(value, "flow") == "application").then(|| text(value, "tokenUrl"));
    let new = value["flows"]["clientCredentials"]["tokenUrl"].as_str().map(str::to_owned);
    new.or(old).filter(|url| !url.is_empty())
}
