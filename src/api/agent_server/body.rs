//! Reads bodies, paths and queries, and refuses what cannot be read in the clients' form.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::refusal::Refusal;
use crate::ids::ThreadId;

/// The header by which a request says whether it waits for people, where its body does not.
const APPROVALS: &str = "x-perihelion-approvals";

/// A JSON body; none at all is an empty object.
pub(in crate::api) struct Body(pub Value);

impl Body {
    /// Reads the body as a type.
    pub(in crate::api) fn read<T: DeserializeOwned>(self) -> Result<T, Refusal> {
        serde_json::from_value(self.0).map_err(|error| Refusal::invalid(error.to_string()))
    }
}

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let is_json = is_json(request.headers());
        let approvals = request.headers().get(APPROVALS).cloned();
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| Refusal(error.status(), error.body_text()))?;
        if bytes.is_empty() {
            return Ok(Self(Value::Object(Default::default())));
        }
        // A page of a stranger may send texts without asking the browser's leave, and JSON it may not.
        if !is_json {
            let why = "the body must be sent as application/json";
            return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why.into()));
        }
        let read = serde_json::from_slice(&bytes);
        let mut body: Value = read.map_err(|_| Refusal::invalid("Invalid JSON in request body"))?;
        if let (Some(word), Value::Object(fields)) = (approvals, &mut body) {
            let word = word.to_str().unwrap_or_default();
            fields.entry("approvals").or_insert_with(|| word.into());
        }
        Ok(Self(body))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind =
        kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// The thread that a path names.
pub(in crate::api) struct OfThread(pub ThreadId);

impl<S: Send + Sync> FromRequestParts<S> for OfThread {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let names = names(parts, state).await?;
        let id = uuid(&names, "thread")
            .map_err(|()| Refusal::invalid("Invalid thread ID: must be a UUID"))?;
        Ok(Self(ThreadId(id)))
    }
}

/// The thread and the run that a path names.
pub(super) struct OfRun(pub ThreadId, pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for OfRun {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let OfThread(thread) = OfThread::from_request_parts(parts, state).await?;
        let names = names(parts, state).await?;
        let run =
            uuid(&names, "run").map_err(|()| Refusal::invalid("Invalid run ID: must be a UUID"))?;
        Ok(Self(thread, run))
    }
}

type Names = std::collections::HashMap<String, String>;

async fn names<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Names, Refusal> {
    let path = Path::<Names>::from_request_parts(parts, state).await;
    Ok(path.map_err(|error| Refusal(error.status(), error.body_text()))?.0)
}

fn uuid(names: &Names, name: &str) -> Result<Uuid, ()> {
    names.get(name).and_then(|text| Uuid::parse_str(text).ok()).ok_or(())
}

/// What stands behind the question mark of an address.
pub(in crate::api) struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(read)| Self(read)).map_err(|error| Refusal::invalid(error.body_text()))
    }
}
