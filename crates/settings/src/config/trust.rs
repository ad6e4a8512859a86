//! How far MCP servers are trusted: pins, taint, approvals.

use std::path::PathBuf;

use serde::Deserialize;

use super::resolve::{Setting, any, seconds, section};

section! {
    /// How far MCP servers are trusted.
    Trust, TrustFile, "trust" {
        /// Whether a server whose definitions changed is left alone until a person approves them.
        pins: PinMode = PinMode::FirstUse, "PERIHELION_TRUST_PINS", any;
        /// Where the pins are kept; none: beside the servers file, in `mcp-servers.lock`.
        pins_file: Option<PathBuf> = None, "PERIHELION_TRUST_PINS_FILE", any;
        /// What happens when text from the open world could lead to a call that changes something.
        taint: TaintRule = TaintRule::Ask, "PERIHELION_TRUST_TAINT", any;
        /// Seconds for which a request for approval can be answered; a later answer is asked for again.
        approval_timeout_sec: f64 = 86_400.0, "PERIHELION_TRUST_APPROVAL_TIMEOUT_SEC", seconds;
        /// The same for runs that a client of the service follows as they run.
        interactive_approval_timeout_sec: f64 = 120.0, "PERIHELION_TRUST_INTERACTIVE_APPROVAL_TIMEOUT_SEC", seconds;
    }
}

/// Whether definitions are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinMode {
    /// What a server says when it is first seen is pinned; a change puts it into quarantine.
    FirstUse,
    /// A server is in quarantine until a person has approved it once.
    Required,
    /// Nothing is pinned or compared.
    Off,
}

impl Setting for PinMode {}

/// What becomes of calls that text from the open world may have led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaintRule {
    /// A person approves each of them.
    Ask,
    /// They are made like any other.
    Off,
}

impl Setting for TaintRule {}
