//! Provenance: which servers of the open world had a say in a text, directly or through others.

use std::collections::BTreeSet;

/// Where a text comes from: `server.tool` of results, `server` of a server's own definitions.
pub type Sources = BTreeSet<String>;
