//! The difference between a pin and a server's present definitions, for the person who decides.

use std::fmt::Write as _;

use serde_json::Value;
use similar::TextDiff;

use super::pin::{ServerPin, ToolPin};
use crate::trust::hidden;

const CONTEXT: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    FirstSeen,
    /// The servers file starts or reaches something else under this name.
    Origin {
        /// Old and new values, one key each.
        values: Vec<String>,
    },
    /// It starts or reaches the same in another way.
    Setting {
        /// As above.
        values: Vec<String>,
    },
    Identity {
        before: String,
        after: String,
    },
    Instructions {
        before: String,
        after: String,
    },
    ToolAdded {
        tool: String,
        after: String,
    },
    ToolRemoved {
        tool: String,
        before: String,
    },
    ToolChanged {
        tool: String,
        before: String,
        after: String,
    },
}

impl ServerPin {
    pub(super) fn moved(
        &self,
        source: &str,
        setting: Option<&str>,
        written: Option<&Value>,
    ) -> Vec<Change> {
        let values = |part: &str| {
            let of = |written: Option<&Value>| written.and_then(|all| all.get(part)).cloned();
            values(of(self.written.as_ref()), of(written))
        };
        let mut changes = Vec::new();
        if self.origin != source {
            changes.push(Change::Origin { values: values("source") });
        }
        if self.setting.is_some() && self.setting.as_deref() != setting {
            changes.push(Change::Setting { values: values("setting") });
        }
        changes
    }
}

fn values(before: Option<Value>, after: Option<Value>) -> Vec<String> {
    let Some(after) = after else { return Vec::new() };
    let parts = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let after = parts(&after);
    let Some(before) = before.as_ref().map(parts) else {
        let now = after.iter().map(|(key, value)| format!("{key}: {value} now"));
        return now.chain(["the pin has no earlier text".to_owned()]).collect();
    };
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let shown = |value: Option<&Value>| value.map_or_else(|| "(none)".to_owned(), Value::to_string);
    let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    changed
        .map(|key| format!("{key}: {} → {}", shown(before.get(key)), shown(after.get(key))))
        .collect()
}

/// All differences, in the order in which they matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes(pub Vec<Change>);

impl Changes {
    pub(super) fn between(before: Option<&ServerPin>, after: &ServerPin) -> Self {
        let added = |(name, pin): (&String, &ToolPin)| Change::ToolAdded {
            tool: name.clone(),
            after: definition(pin),
        };
        let Some(before) = before else {
            let tools = after.tools.iter().map(added);
            return Self(std::iter::once(Change::FirstSeen).chain(tools).collect());
        };
        let mut changes =
            before.moved(&after.origin, after.setting.as_deref(), after.written.as_ref());
        if before.identity != after.identity {
            let before = before.identity.clone();
            let after = after.identity.clone();
            changes.push(Change::Identity { before, after });
        }
        if before.instructions != after.instructions {
            let before = before.instructions.clone();
            let after = after.instructions.clone();
            changes.push(Change::Instructions { before, after });
        }
        for (name, was) in &before.tools {
            let tool = name.clone();
            match after.tools.get(name) {
                Some(is) if is.sha256 == was.sha256 => {}
                Some(is) => {
                    let before = definition(was);
                    let after = definition(is);
                    changes.push(Change::ToolChanged { tool, before, after });
                }
                None => changes.push(Change::ToolRemoved { tool, before: definition(was) }),
            }
        }
        let new = after.tools.iter().filter(|(name, _)| !before.tools.contains_key(*name));
        changes.extend(new.map(added));
        Self(changes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn summary(&self) -> String {
        self.headings().join(", ")
    }

    pub fn headings(&self) -> Vec<String> {
        self.0.iter().map(Change::heading).collect()
    }

    /// Shows the differences line by line, with invisible characters made visible.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for change in &self.0 {
            let _ = writeln!(text, "{}", hidden::shown(&change.heading()));
            let (before, after) = match change {
                Change::FirstSeen => continue,
                Change::Origin { values } | Change::Setting { values } => {
                    for value in values {
                        let _ = writeln!(text, "  {}", hidden::shown(value));
                    }
                    continue;
                }
                Change::ToolAdded { after, .. } => ("", after.as_str()),
                Change::ToolRemoved { before, .. } => (before.as_str(), ""),
                Change::Identity { before, after }
                | Change::Instructions { before, after }
                | Change::ToolChanged { before, after, .. } => (before.as_str(), after.as_str()),
            };
            let before = hidden::shown(before);
            let after = hidden::shown(after);
            let diff = TextDiff::from_lines(&before, &after);
            for group in diff.grouped_ops(CONTEXT) {
                for line in group.iter().flat_map(|op| diff.iter_changes(op)) {
                    let _ =
                        writeln!(text, "  {}{}", line.tag(), line.value().trim_end_matches('\n'));
                }
            }
        }
        text
    }
}

impl Change {
    fn heading(&self) -> String {
        match self {
            Self::FirstSeen => "it was never pinned".to_owned(),
            Self::Origin { .. } => {
                "its command, arguments or address in the servers file changed".to_owned()
            }
            Self::Setting { .. } => {
                "its directory, environment, headers or sandbox in the servers file \
                              changed"
                    .to_owned()
            }
            Self::Identity { before, after } => {
                format!("it calls itself {after:?} and no longer {before:?}")
            }
            Self::Instructions { .. } => "its instructions changed".to_owned(),
            Self::ToolAdded { tool, .. } => format!("the tool {tool} was added"),
            Self::ToolRemoved { tool, .. } => format!("the tool {tool} was removed"),
            Self::ToolChanged { tool, .. } => format!("the tool {tool} changed"),
        }
    }
}

/// Writes a definition as people read it: texts as lines, schemas as indented JSON.
fn definition(pin: &ToolPin) -> String {
    let Value::Object(parts) = &pin.definition else { return pin.definition.to_string() };
    let mut text = String::new();
    for (name, part) in parts {
        let shown = match part {
            Value::Null => continue,
            Value::String(words) => words.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        let _ = writeln!(text, "{name}:");
        for line in shown.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}
