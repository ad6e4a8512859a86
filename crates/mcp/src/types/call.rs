//! What travels with a call, what is told while it lasts, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::call_policy::CallPolicy;

/// Where a bundled server finds whose call it is.
pub const TENANT_META: &str = "dev.perihelion/tenant";

/// What travels with a call besides its arguments.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// Stable over every attempt of the same call; sent in `_meta` under `dev.perihelion/idempotency-key`.
    pub idempotency_key: String,
    /// Whose call it is; sent in `_meta` under [`TENANT_META`] to bundled servers, which are this program itself.
    pub tenant: String,
    /// W3C `traceparent`, sent in `_meta` where present.
    pub traceparent: Option<String>,
    /// The rules under which the call was decided on; it is not sent where stricter ones hold by now.
    pub under: Option<CallPolicy>,
    /// Takes what the server says of how far it is; what there is no room for is left out.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// How far a call is, in the server's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub done: f64,
    /// What `done` comes to in the end, where that is known.
    pub total: Option<f64>,
    /// One short line.
    pub message: String,
}

/// What an answered call ran over: the words by which a server's own log can be searched for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Via {
    /// Negotiated MCP protocol version.
    pub protocol_version: String,
    /// `pipe` (stdio) or `tcp` (HTTP), as the OpenTelemetry conventions name transports.
    pub transport: String,
    /// The session of a streamable HTTP server that keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Id of the JSON-RPC request; of the last one, where the call was made again.
    pub request_id: String,
}

/// How a call that reached the server ended; a tool's own error is data, not an `Err`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    pub is_error: bool,
    /// All text content, joined by newlines; non-text blocks are described in brackets.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// None in what was recorded before this was kept, and where a person supplied the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}
