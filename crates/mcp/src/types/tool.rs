//! A tool as its server lists it and the operator lets it be called, and which of two rules is the stricter.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema::InputSchema;

/// A server's hints about a tool; untrusted, so they may tighten policy and never relax it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnnotations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments, with what checks them against it.
    pub input_schema: InputSchema,
    /// JSON Schema of the structured result, if the server declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// The *operator* declared in the servers file that the call may be repeated (read-only or idempotent).
    #[serde(default)]
    pub repeatable: bool,
    /// A person approves each call: the operator wants it so, or the server calls the tool destructive.
    #[serde(default)]
    pub needs_approval: bool,
    /// Seconds until an approval of a call expires, if the operator sets it for this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout_sec: Option<u32>,
    /// The operator approved every call in advance (`approval_mode = "approve"`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved_in_advance: bool,
    /// A call changes nothing, according to the operator or a server that is trusted in this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// The tool's results are open-world content, such as web pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_world: bool,
}

impl ToolDefinition {
    pub fn call_policy(&self) -> CallPolicy {
        CallPolicy {
            needs_approval: self.needs_approval,
            approved_in_advance: self.approved_in_advance,
            read_only: self.read_only,
            repeatable: self.repeatable,
            open_world: self.open_world,
        }
    }

    pub fn under(&self, call_policy: CallPolicy) -> Self {
        Self {
            needs_approval: call_policy.needs_approval,
            approved_in_advance: call_policy.approved_in_advance,
            read_only: call_policy.read_only,
            repeatable: call_policy.repeatable,
            open_world: call_policy.open_world,
            ..self.clone()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPolicy {
    pub needs_approval: bool,
    pub approved_in_advance: bool,
    pub read_only: bool,
    pub repeatable: bool,
    pub open_world: bool,
}

impl CallPolicy {
    pub fn stricter(self, other: Self) -> Self {
        Self {
            needs_approval: self.needs_approval || other.needs_approval,
            approved_in_advance: self.approved_in_advance && other.approved_in_advance,
            read_only: self.read_only && other.read_only,
            repeatable: self.repeatable && other.repeatable,
            open_world: self.open_world || other.open_world,
        }
    }

    /// Returns the policy of an approved call: no question is left.
    pub fn allowed(self) -> Self {
        Self { needs_approval: true, approved_in_advance: false, read_only: false, ..self }
    }

    /// Returns whether a call that was decided under these rules needs another decision under those.
    pub(crate) fn is_weaker_than(self, now: Self) -> bool {
        let strict = Self { repeatable: self.repeatable, ..self.stricter(now) };
        strict != self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn tool(schema: Value) -> ToolDefinition {
        let input_schema = schema.into();
        ToolDefinition { name: "add".into(), input_schema, ..ToolDefinition::default() }
    }

    #[test]
    fn wrong_arguments_are_named_with_their_place() {
        let tool = tool(json!({
            "type": "object", "required": ["a"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}
        }));
        let check = |value: Value| tool.input_schema.check(&tool.name, value.as_object().unwrap());
        check(json!({"a": 1, "other": true})).unwrap();
        let complaint = check(json!({"b": 7})).unwrap_err().to_string();
        assert!(complaint.contains("at /b:") && complaint.contains("\"a\""), "{complaint}");
    }

    #[test]
    fn a_schema_elsewhere_is_not_fetched() {
        let tool = tool(json!({"$ref": "https://example.invalid/schema.json"}));
        let refused = tool.input_schema.check(&tool.name, &Map::new()).unwrap_err().to_string();
        assert!(refused.starts_with("the input schema of add cannot be used"), "{refused}");
    }

    #[test]
    fn a_schema_is_compiled_once_for_all_holders_of_the_tool_under_any_rules() {
        let tool = tool(json!({"type": "object"}));
        // As an agent holds it, made before anybody compiled anything.
        let copy = tool.clone();
        let of = |tool: &ToolDefinition| std::ptr::from_ref(tool.input_schema.checker().unwrap());
        let first = of(&tool);
        assert_eq!(of(&tool), first, "a second call");
        assert_eq!(of(&copy), first, "another holder");
        assert_eq!(
            of(&copy.under(CallPolicy { needs_approval: true, ..tool.call_policy() })),
            first
        );
        let read: ToolDefinition = serde_json::from_value(json!(tool)).unwrap();
        assert_eq!(read, tool, "as it is written, without what was compiled");
        assert_ne!(of(&read), first);
    }
}
