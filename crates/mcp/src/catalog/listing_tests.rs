//! For tests: the list of a server.

use std::sync::Arc;

use serde_json::Value;

use super::definitions::{Definitions, Identity};
use super::listing::Listing;
use crate::configuration::ServersFile;
use perihelion_clock as clock;

/// Reads a list of tools from a server `x`; `before` is its previous list.
pub(crate) fn listing_of(tools: &Value, before: Option<&Listing>) -> Arc<Listing> {
    let text = "[mcp_servers.x]\ncommand = \"x\"\n";
    let file = ServersFile::parse("f".as_ref(), text, &|_| None).unwrap();
    let definitions = Definitions {
        protocol_version: "2025-11-25".into(),
        identity: Identity::default(),
        instructions: None,
        tools: tools.as_array().cloned().unwrap_or_default(),
        incomplete: None,
        ttl_ms: None,
        listed_at: clock::now(),
    };
    Arc::new(Listing::of(definitions, &file.servers[0], before))
}

/// Returns the list of a server without tools.
pub(crate) fn empty() -> Arc<Listing> {
    listing_of(&Value::Null, None)
}
