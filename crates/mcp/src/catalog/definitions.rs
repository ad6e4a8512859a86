//! A server's description and tools in their original form, which is stored and compared.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rmcp::model::ProtocolVersion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{configuration::ServerConfig, transport::connect::Era, trust::hidden, types::text};

/// Characters of a server's description; more would crowd every prompt of its agent.
const MAX_WORDS: usize = 16_000;
const MAX_NAME: usize = 200;
const CUT: &str = "… [cut: the server says more than is used]";

/// How long a tool list is fresh by default, if neither the operator nor the server sets it.
const UNSAID_TTL: Duration = Duration::from_secs(86_400);
/// A clock that went back must not keep a list fresh for longer than this.
const SKEW: TimeDelta = TimeDelta::minutes(5);

/// The answer to one tool list, with who gave it; the server's secrets are redacted in all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Definitions {
    pub protocol_version: String,
    pub identity: Identity,
    pub instructions: Option<String>,
    /// The tools in the server's order, each in its wire form, including malformed ones.
    pub tools: Vec<Value>,
    /// Why the list may be incomplete, if so.
    pub incomplete: Option<String>,
    /// How long the list is fresh according to the server; `None` if it does not say.
    pub ttl_ms: Option<u64>,
    pub listed_at: DateTime<Utc>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub name: String,
    pub version: String,
    pub title: Option<String>,
    pub description: Option<String>,
}

impl Identity {
    pub fn bounded(self) -> Self {
        Self {
            name: text::cut(&self.name, MAX_NAME),
            version: text::cut(&self.version, MAX_NAME),
            title: self.title.map(|title| text::cut(&title, MAX_NAME)),
            description: self.description.map(bounded),
        }
    }
}

/// Cuts a text to its bound, and marks the cut.
pub(crate) fn bounded(words: String) -> String {
    match words.char_indices().nth(MAX_WORDS) {
        None => words,
        Some(_) => words.chars().take(MAX_WORDS - CUT.chars().count()).chain(CUT.chars()).collect(),
    }
}

impl Definitions {
    /// Returns the server's own description; `None` if it contains hidden characters.
    pub fn own_words(&self) -> Option<&str> {
        let Identity { title, description, .. } = &self.identity;
        let content = [&self.instructions, description, title].into_iter().flatten();
        content.map(String::as_str).find(|words| hidden::find_in(words).is_none())
    }

    /// Lists the parts of its text that are not used unchanged.
    pub fn left_out(&self) -> Option<String> {
        let content = self.instructions.as_deref()?;
        if let Some(letter) = hidden::find_in(content) {
            let letter = letter.escape_unicode();
            return Some(format!("they contain an invisible character: {letter}"));
        }
        content
            .ends_with(CUT)
            .then(|| format!("cut, because they are longer than {MAX_WORDS} characters"))
    }

    /// Returns how long the list is fresh: the operator's word goes before the server's.
    pub fn ttl(&self, config: &ServerConfig) -> Duration {
        let content = self.ttl_ms.map(Duration::from_millis);
        config.definitions_ttl.or(content).unwrap_or(UNSAID_TTL)
    }

    pub fn is_fresh(&self, config: &ServerConfig, now: DateTime<Utc>) -> bool {
        let ttl = TimeDelta::from_std(self.ttl(config)).unwrap_or(TimeDelta::MAX);
        let until = self.listed_at.checked_add_signed(ttl).unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.listed_at <= now + SKEW && now < until
    }

    /// Returns whether both have the same content, at any time of listing.
    pub fn same_as(&self, other: &Self) -> bool {
        self.protocol_version == other.protocol_version
            && self.identity == other.identity
            && self.instructions == other.instructions
            && self.tools == other.tools
            && self.incomplete == other.incomplete
    }

    pub fn era(&self) -> Era {
        let version = Value::from(self.protocol_version.as_str());
        let version = serde_json::from_value::<ProtocolVersion>(version);
        version.map_or(Era::Unknown, |version| Era::of(&version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::ServersFile;

    #[test]
    fn a_list_is_fresh_for_the_time_that_the_operator_or_server_sets() {
        let listed_at = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let mut definitions = Definitions {
            protocol_version: "2025-11-25".into(),
            identity: Identity::default(),
            instructions: None,
            tools: Vec::new(),
            incomplete: None,
            ttl_ms: None,
            listed_at,
        };
        let text = "[mcp_servers.x]\ncommand = \"x\"\n";
        let parse = |more: &str| {
            let text = format!("{text}{more}");
            let file = ServersFile::parse("f".as_ref(), &text, &|_| None).unwrap();
            file.servers[0].clone()
        };
        let silent = parse("");
        let strict = parse("definitions_ttl_sec = 60");
        let after = |seconds| listed_at + TimeDelta::seconds(seconds);
        assert!(definitions.is_fresh(&silent, after(86_399)));
        assert!(!definitions.is_fresh(&silent, after(86_400)));
        assert!(!definitions.is_fresh(&silent, after(-3600)), "listed in the future");
        definitions.ttl_ms = Some(10_000);
        assert!(
            definitions.is_fresh(&silent, after(9)) && !definitions.is_fresh(&silent, after(10))
        );
        assert!(
            definitions.is_fresh(&strict, after(59)) && !definitions.is_fresh(&strict, after(60))
        );
        definitions.ttl_ms = Some(0);
        assert!(!definitions.is_fresh(&silent, after(0)), "immediately stale");
        assert_eq!(definitions.era(), Era::Legacy);
        definitions.protocol_version = "2026-07-28".into();
        assert_eq!(definitions.era(), Era::Modern);
    }
}
