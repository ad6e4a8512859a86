//! What is pinned of a server: where it comes from, what it calls itself, and what it says to models.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::configuration::Origin;
use crate::configuration::redact::Secrets;
use crate::types::{ToolDefinition, digest, sorted};

/// A server as it was trusted, without the secrets of its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerPin {
    /// Over all that follows; a tool that was renamed, added or removed changes it as well.
    pub sha256: String,
    /// SHA-256 of command and arguments, or of the URL, as they stand in the servers file.
    pub origin: String,
    /// SHA-256 of directory, environment, names of headers and sandbox, as they stand in the servers file; none in a
    /// pin of a version that did not look at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// What was hashed, to be shown beside what stands there now; none in a pin of a version that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Value>,
    /// Name and version that the server reported.
    pub identity: String,
    pub instructions: String,
    pub tools: BTreeMap<String, ToolPin>,
}

/// A tool as it was trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPin {
    /// Over name and definition.
    pub sha256: String,
    /// Title, description, both schemas and annotations, kept so that a later change can be shown.
    pub definition: Value,
}

impl ServerPin {
    /// Makes the pin of what a server says now.
    pub(crate) fn new(
        origin: &Origin,
        identity: &str,
        instructions: &str,
        tools: &[ToolDefinition],
        secrets: &Secrets,
    ) -> Self {
        let tools = tools.iter().map(|tool| (tool.name.clone(), ToolPin::new(tool, secrets)));
        let mut pin = Self {
            sha256: String::new(),
            origin: origin.source.clone(),
            setting: Some(origin.setting.clone()),
            written: Some(secrets.redact_json(sorted(&origin.written))),
            identity: secrets.redact(identity),
            instructions: secrets.redact(instructions),
            tools: tools.collect(),
        };
        pin.sha256 = pin.hash();
        pin
    }

    /// Checks that the hashes are those of what the pin holds; returns what was altered.
    pub(super) fn altered(&self) -> Option<String> {
        let tool = self.tools.iter().find(|(name, tool)| tool.sha256 != tool.hash(name));
        match tool {
            Some((name, _)) => Some(format!("tools.{name}")),
            None => (self.sha256 != self.hash()).then(|| "sha256".to_owned()),
        }
    }

    /// Returns this pin with what an older version did not look at, where that is missing.
    pub(super) fn completed(&self, seen: &Self) -> Option<Self> {
        if self.setting.is_some() && self.written.is_some() {
            return None;
        }
        let setting = self.setting.clone().or_else(|| seen.setting.clone());
        let written = self.written.clone().or_else(|| seen.written.clone());
        let mut pin = Self { setting, written, ..self.clone() };
        pin.sha256 = pin.hash();
        Some(pin)
    }

    fn hash(&self) -> String {
        let tools: BTreeMap<_, _> =
            self.tools.iter().map(|(name, tool)| (name, &tool.sha256)).collect();
        let mut all = json!({
            "origin": self.origin, "identity": self.identity, "instructions": self.instructions,
            "tools": tools,
        });
        if let (Some(setting), Value::Object(all)) = (&self.setting, &mut all) {
            all.insert("setting".to_owned(), Value::from(setting.as_str()));
        }
        if let (Some(written), Value::Object(all)) = (&self.written, &mut all) {
            all.insert("written".to_owned(), written.clone());
        }
        digest(&all)
    }
}

impl ToolPin {
    fn new(tool: &ToolDefinition, secrets: &Secrets) -> Self {
        let definition = secrets.redact_json(sorted(&json!({
            "title": tool.title,
            "description": tool.description,
            "input_schema": tool.input_schema,
            "output_schema": tool.output_schema,
            "annotations": tool.annotations,
        })));
        let mut pin = Self { sha256: String::new(), definition };
        pin.sha256 = pin.hash(&tool.name);
        pin
    }

    fn hash(&self, name: &str) -> String {
        digest(&json!({ "name": name, "definition": self.definition }))
    }
}
