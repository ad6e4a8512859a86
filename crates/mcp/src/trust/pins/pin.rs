//! The content of a pin, and the lock file of all pins: sorted JSON, one change per line, for version control.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::types::{ToolDefinition, digest, sorted};
use crate::{configuration::Origin, configuration::redact::Secrets};
use perihelion_settings::config::Error;

/// A server as it was trusted, without the secrets of its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerPin {
    /// Over all that follows; a tool that was renamed, added or removed changes it as well.
    pub sha256: String,
    /// SHA-256 of command and arguments, or of the URL, as written in the servers file.
    pub origin: String,
    /// SHA-256 of directory, environment, names of headers and sandbox, as written in the servers file; `None` in a pin
    /// of a version that did not check them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The hashed text, to show it next to the present one; `None` in a pin of a version that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Value>,
    /// Name and version that the server reported.
    pub identity: String,
    pub instructions: String,
    pub tools: BTreeMap<String, ToolPin>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPin {
    /// Over name and definition.
    pub sha256: String,
    /// Title, description, both schemas and annotations, kept so that a later change can be shown.
    pub definition: Value,
}

impl ServerPin {
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

    /// Checks that the hashes match the pin's content; returns the altered parts.
    pub(super) fn altered(&self) -> Option<String> {
        let tool = self.tools.iter().find(|(name, tool)| tool.sha256 != tool.hash(name));
        match tool {
            Some((name, _)) => Some(format!("tools.{name}")),
            None => (self.sha256 != self.hash()).then(|| "sha256".to_owned()),
        }
    }

    /// Returns this pin, completed by the parts that an older version did not check.
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
            "tools": tools, "setting": self.setting, "written": self.written,
        });
        if let Value::Object(all) = &mut all {
            // Pins of older versions lack some parts.
            all.retain(|_, part| !part.is_null());
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

const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockFile {
    version: u32,
    pub servers: BTreeMap<String, ServerPin>,
}

impl LockFile {
    /// Reads the file's text; `None` if it does not exist.
    pub fn read(path: &Path) -> Result<Option<String>, Error> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path: path.to_owned(), source }),
        }
    }

    /// Checks the file's text; without one there are no pins.
    pub fn parse(path: &Path, text: Option<&str>) -> Result<Self, Error> {
        let Some(text) = text else {
            return Ok(Self { version: VERSION, servers: BTreeMap::new() });
        };
        let hint = "; restore it from version control, or approve each server again";
        let file: Self = serde_json::from_str(text)
            .map_err(|error| Error::of_json(path, &error, "a lock file of MCP servers", hint))?;
        if file.version != VERSION {
            let reason = format!("this program reads version {VERSION}, not: {}", file.version);
            return Err(Error::value(path, "version", reason));
        }
        for (name, pin) in &file.servers {
            if let Some(part) = pin.altered() {
                let reason = format!(
                    "the hash does not match the entry; restore the file from version control, or remove the \
                     entry and approve the server again: perihelion agents approve {name}"
                );
                return Err(Error::value(path, format!("servers.{name}.{part}"), reason));
            }
        }
        Ok(file)
    }

    /// Makes other processes wait that want to change the file, if the file system has locks.
    ///
    /// Without them two first looks can lose one pin, which is then made at the next look.
    pub fn turn(path: &Path) -> Result<File, Error> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let turn = File::open(directory.unwrap_or(Path::new(".")))
            .map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let _ = turn.lock();
        Ok(turn)
    }

    /// Writes the file, which is replaced whole or not at all, and returns its text.
    pub fn write(&self, path: &Path) -> Result<String, Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let beside = path.with_extension(format!("lock.{}", uuid::Uuid::new_v4().simple()));
        let written = std::fs::write(&beside, &text).and_then(|()| std::fs::rename(&beside, path));
        written.inspect_err(|_| drop(std::fs::remove_file(&beside))).map_err(failed)?;
        Ok(text)
    }
}
