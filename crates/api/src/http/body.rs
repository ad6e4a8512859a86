//! Reads bodies, paths and queries, and refuses what cannot be read in the clients' form.

use std::collections::HashMap;
use std::marker::PhantomData;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::uri::InvalidUri;
use axum::http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::form_urlencoded;
use uuid::Uuid;

use super::Refusal;
use super::forms::{Forms, Input};
use perihelion_engine::ids::ThreadId;

/// The header by which a request says whether it waits for people, where its body does not.
const APPROVALS: &str = "x-perihelion-approvals";

/// A JSON body that is read as an object of a type; an empty one is an empty object.
pub(crate) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let Raw(body, _) = Raw::<T>::from_request(request, state).await?;
        read_object(body).map(Self)
    }
}

impl<T: JsonSchema> Input for Body<T> {
    fn describe(forms: &mut Forms, route: &str) {
        forms.body::<T>(route);
    }
}

pub(crate) fn read_object<T: DeserializeOwned>(body: Value) -> Result<T, Refusal> {
    typed("the body", body).map_err(Refusal::invalid)
}

/// Why a value cannot be read as a type.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mistyped {
    #[error("{0} must be an object")]
    NoObject(&'static str),
    /// Its message names the field.
    #[error(transparent)]
    Field(#[from] serde_path_to_error::Error<serde_json::Error>),
}

/// Reads an object as a type.
pub(crate) fn typed<T: DeserializeOwned>(what: &'static str, value: Value) -> Result<T, Mistyped> {
    // A list of the fields' values would be read, too.
    if !value.is_object() {
        return Err(Mistyped::NoObject(what));
    }
    Ok(serde_path_to_error::deserialize(value)?)
}

/// A JSON body in the form of a type, which its handler reads itself; an empty one is an empty object.
pub(crate) struct Raw<T>(pub Value, pub PhantomData<fn() -> T>);

/// A value that is written as an object, and not as a list of its fields' values.
#[derive(JsonSchema)]
#[schemars(transparent)]
pub(crate) struct Object<T>(pub T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = serde_json::Map::deserialize(deserializer)?;
        serde_json::from_value(Value::Object(fields)).map(Self).map_err(serde::de::Error::custom)
    }
}

impl<T: JsonSchema> Input for Raw<T> {
    fn describe(forms: &mut Forms, route: &str) {
        forms.body::<T>(route);
    }
}

impl<S: Send + Sync, T> FromRequest<S> for Raw<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let is_json = is_json(request.headers());
        let approvals = request.headers().get(APPROVALS).cloned();
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| Refusal(error.status(), error.body_text()))?;
        if bytes.is_empty() {
            return Ok(Self(Value::Object(Default::default()), PhantomData));
        }
        // A page of a stranger may send texts without asking the browser's leave, and JSON it may not.
        if !is_json {
            let why = "the body must be sent as application/json";
            return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why.into()));
        }
        let mut body = json(&bytes).map_err(Refusal::invalid)?;
        if let (Some(word), Value::Object(fields)) = (approvals, &mut body) {
            let word = word.to_str().unwrap_or_default();
            fields.entry("approvals").or_insert_with(|| word.into());
        }
        Ok(Self(body, PhantomData))
    }
}

/// Reads JSON whose texts a database can keep.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, &'static str> {
    let read: Result<Value, _> = serde_json::from_slice(bytes);
    let read = read.map_err(|_| "Invalid JSON in request body")?;
    // Looked for only where the bytes may write it.
    let may_contain = bytes.windows(ZERO.len()).any(|part| part == ZERO);
    if may_contain && contains_zero(&read) {
        Err("texts must not contain the character U+0000")
    } else {
        Ok(read)
    }
}

/// The character that no text may contain, as JSON writes it.
const ZERO: &[u8] = b"\\u0000";

fn contains_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(list) => list.iter().any(contains_zero),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || contains_zero(value))
        }
        _ => false,
    }
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind =
        kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

pub(crate) struct OfThread(pub ThreadId);

impl Input for OfThread {}

impl<S: Send + Sync> FromRequestParts<S> for OfThread {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(ThreadId(id("thread", parts, state).await?)))
    }
}

/// The thread in a path, if there is one: a run without a thread gets a new one.
pub(crate) struct MaybeOfThread(pub Option<ThreadId>);

impl Input for MaybeOfThread {}

impl<S: Send + Sync> FromRequestParts<S> for MaybeOfThread {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        if !parts.uri.path().contains("/threads/") {
            return Ok(Self(None));
        }
        let OfThread(thread) = OfThread::from_request_parts(parts, state).await?;
        Ok(Self(Some(thread)))
    }
}

pub(crate) struct OfRun(pub ThreadId, pub Uuid);

impl Input for OfRun {}

impl<S: Send + Sync> FromRequestParts<S> for OfRun {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let OfThread(thread) = OfThread::from_request_parts(parts, state).await?;
        Ok(Self(thread, id("run", parts, state).await?))
    }
}

async fn id<S: Send + Sync>(name: &str, parts: &mut Parts, state: &S) -> Result<Uuid, Refusal> {
    let path = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    let Path(names) = path.map_err(|error| Refusal(error.status(), error.body_text()))?;
    uuid(name, names.get(name).map_or("", String::as_str))
}

/// Reads the ID of a thing that clients know by this name.
pub(crate) fn uuid(name: &str, text: &str) -> Result<Uuid, Refusal> {
    let invalid = |_| Refusal::invalid(format!("Invalid {name} ID: must be a UUID"));
    Uuid::parse_str(text).map_err(invalid)
}

pub(crate) struct Asked<T>(pub T);

impl<T: JsonSchema> Input for Asked<T> {
    fn describe(forms: &mut Forms, route: &str) {
        forms.query::<T>(route);
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let asked = as_lists(parts.uri.query().unwrap_or_default()).parse();
        let asked = asked.map_err(|error: InvalidUri| Refusal::invalid(error))?;
        let query = Query::<T>::try_from_uri(&asked);
        query.map(|Query(read)| Self(read)).map_err(|error| Refusal::invalid(error.body_text()))
    }
}

/// Parameters that clients repeat for a list.
const LISTS: [&str; 3] = ["select", "stream_mode", "stream_modes"];

/// Writes an address whose query has each of [`LISTS`] once, with commas between its values.
fn as_lists(query: &str) -> String {
    let given = || form_urlencoded::parse(query.as_bytes());
    let lists = LISTS.map(|list| {
        let values = given().filter(|(name, _)| name == list).map(|(_, value)| value);
        (list, values.collect::<Vec<_>>().join(","))
    });
    let mut written = form_urlencoded::Serializer::for_suffix("/?".to_owned(), 2);
    written.extend_pairs(given().filter(|(name, _)| !LISTS.contains(&name.as_ref())));
    written.extend_pairs(lists.iter().filter(|(_, values)| !values.is_empty()));
    written.finish()
}
