//! Asks a server for its tools page by page, within bounds.
//!
//! `list_all_tools` of rmcp never ends on a repeated cursor, and fails on one malformed tool.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, RequestMetaObject};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::definitions::{self, Definitions, Identity};
use crate::configuration::ServerConfig;
use crate::transport::delivery;
use crate::transport::session::{self, Bounds, Failure, Session};
use crate::types::text;
use perihelion_clock as clock;

/// A list with more pages counts as endless.
const MAX_PAGES: usize = 100;
/// No model can choose among more tools.
const MAX_TOOLS: usize = 2000;
/// More than all of them together need.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    #[error("its tool list is longer than {MAX_LIST_BYTES} bytes")]
    TooLong,
    #[error("it lists more than {MAX_TOOLS} tools")]
    TooMany,
    #[error("its tool list does not end after {MAX_PAGES} pages")]
    Endless,
    #[error("the tool list did not arrive: {0}")]
    Closed(String),
    #[error("the tool list did not arrive within the start-up timeout: {0} s")]
    Late(f64),
    #[error("it refused to list its tools: {}", delivery::chain(.0))]
    Refused(#[source] ServiceError),
    #[error("its answer is not a tool list: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Asks for all pages within the server's start-up timeout.
pub(crate) async fn fetch(
    session: &Session,
    config: &ServerConfig,
) -> Result<Definitions, ListError> {
    let mut definitions = introduce(session, config);
    let mut seen = HashSet::new();
    let mut cursor = None;
    let mut bytes = 0;
    let started = clock::monotonic();
    for _ in 0..MAX_PAGES {
        let left = config.startup_timeout.saturating_sub(started.elapsed());
        let page = page(session, cursor, left, config.startup_timeout).await?;
        bytes += page.tools.iter().map(text::json_bytes).sum::<usize>();
        if bytes > MAX_LIST_BYTES {
            return Err(ListError::TooLong);
        }
        if definitions.tools.len() + page.tools.len() > MAX_TOOLS {
            return Err(ListError::TooMany);
        }
        definitions.ttl_ms = page.ttl_ms.or(definitions.ttl_ms);
        let next = page.next_cursor.filter(|next| !next.is_empty());
        let tools = page.tools.into_iter().map(|tool| config.secrets.redact_json(tool));
        definitions.tools.extend(tools);
        let Some(next) = next else { return Ok(definitions) };
        if !seen.insert(next.clone()) {
            // What was listed so far is kept: the pages from here on are those already seen.
            let reason = "the server repeated a cursor, so the list may not be whole".to_owned();
            definitions.incomplete = Some(reason);
            return Ok(definitions);
        }
        cursor = Some(next);
    }
    Err(ListError::Endless)
}

/// One page; tools stay JSON until each is read on its own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(deserialize_with = "list")]
    tools: Vec<Value>,
    #[serde(default, deserialize_with = "cursor")]
    next_cursor: Option<String>,
    #[serde(default, deserialize_with = "milliseconds")]
    ttl_ms: Option<u64>,
}

/// Reads null as an empty list, as some languages write it.
fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Value>, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Reads a cursor that can also be a number.
fn cursor<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Reads a duration that can also be a fraction or a text; anything else is none.
fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    Ok(number.filter(|number| *number >= 0.0).map(|number| number as u64))
}

async fn page(
    session: &Session,
    cursor: Option<String>,
    left: Duration,
    whole: Duration,
) -> Result<Page, ListError> {
    let bounds = Bounds { idle: left, total: left };
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
    let sent = session::send(session, request, RequestMetaObject::new(), bounds).await;
    let result = match sent {
        Ok(answer) => answer.result,
        Err(Failure::NotHandedOver | Failure::Closed) => {
            return Err(ListError::Closed(session.why_ended().await));
        }
        Err(Failure::TimedOut(_)) => return Err(ListError::Late(whole.as_secs_f64())),
        Err(Failure::Service(error)) => return Err(ListError::Refused(error)),
    };
    Ok(serde_json::from_value(serde_json::to_value(result)?)?)
}

fn introduce(session: &Session, config: &ServerConfig) -> Definitions {
    let peer = session.peer.peer_info();
    let server = peer.as_ref().and_then(|peer| peer.server_info.as_ref());
    let clean = |text: &str| config.secrets.redact(text);
    let identity = server.map(|server| Identity {
        name: clean(&server.name),
        version: clean(&server.version),
        title: server.title.as_deref().map(clean),
        description: server.description.as_deref().map(clean),
    });
    let words = peer.as_ref().and_then(|peer| peer.instructions.as_deref());
    let instructions = words.map(clean);
    Definitions {
        protocol_version: peer
            .as_ref()
            .map(|peer| peer.protocol_version.to_string())
            .unwrap_or_default(),
        identity: identity.unwrap_or_default().bounded(),
        instructions: instructions.map(definitions::bounded),
        tools: Vec::new(),
        incomplete: None,
        ttl_ms: None,
        listed_at: clock::now(),
    }
}
