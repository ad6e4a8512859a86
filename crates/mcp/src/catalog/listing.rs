//! Reads a server's list, tool by tool, with the valid tools and a report on invalid ones; an open session with it.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::definitions::{Definitions, Identity};
use crate::configuration::{ServerConfig, ToolPolicy, redact::REDACTED};
use crate::types::schema::{self, Checker};
use crate::types::{
    CallPolicy, InputSchema, ServerInfo, ToolAnnotations, ToolDefinition, Via, schema_repair, text,
};
use crate::{transport::session::Session, trust::hidden};

/// A longer definition would crowd the model's context; as JSON.
const MAX_TOOL_BYTES: usize = 64 * 1024;
const MAX_NAME_CHARS: usize = 128;
/// Longest tool description; a longer one is cut, with a mark at its end.
const MAX_DESCRIPTION_CHARS: usize = 8_000;

pub(crate) struct Listing {
    pub info: ServerInfo,
    /// Compiled output schemas, by tool name.
    pub outputs: HashMap<String, Arc<Checker>>,
    pub definitions: Definitions,
}

/// A tool in its wire form; unknown fields are ignored, and so are texts of another type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    #[serde(default, deserialize_with = "words")]
    title: Option<String>,
    #[serde(default, deserialize_with = "words")]
    description: Option<String>,
    #[serde(default)]
    input_schema: Value,
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Value,
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(from)?.as_str().map(str::to_owned))
}

/// Reads a hint: a truth value, or its name as a text.
fn hint(tool: &Value, name: &str) -> Option<bool> {
    match &tool[name] {
        Value::Bool(hint) => Some(*hint),
        Value::String(name) if name.eq_ignore_ascii_case("true") => Some(true),
        Value::String(name) if name.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn is_hinted(definitions: &Definitions) -> bool {
    let claims = |tool: &Value| hint(&tool["annotations"], "openWorldHint") == Some(true);
    definitions.tools.iter().any(claims)
}

impl Listing {
    /// Reads a server's definitions, limited by the operator's settings; schemas of definitions in `before` are not
    /// compiled again.
    pub fn of(definitions: Definitions, config: &ServerConfig, before: Option<&Self>) -> Self {
        let Identity { name, version, .. } = &definitions.identity;
        let open_world = config.tools.open_world == Some(true);
        // Text that anyone may have written stays out of the supervisor's menu.
        let is_strangers =
            open_world || (config.tools.open_world.is_none() && is_hinted(&definitions));
        let words = definitions.own_words().filter(|_| !is_strangers);
        let description = config.description.as_deref().or(words).unwrap_or_default();
        let info = ServerInfo {
            name: config.name.clone(),
            description: config.secrets.redact(description.trim()),
            server_version: hidden::shown(&text::one_line(&format!("{name} {version}"))),
            protocol_version: definitions.protocol_version.clone(),
            open_world,
            agent: config.agent.clone(),
            ..ServerInfo::default()
        };
        let instructions = definitions.left_out();
        let tools = definitions.tools.clone();
        let mut listing = Self { info, outputs: HashMap::new(), definitions };
        for tool in tools {
            listing.add(tool, &config.tools, before);
        }
        if let Some(reason) = listing.definitions.incomplete.clone() {
            listing.info.rejected_tools.push(("(further pages)".into(), reason));
        }
        if let Some(reason) = instructions {
            listing.info.rejected_tools.push(("(instructions)".into(), reason));
        }
        listing.report_missing(&config.tools);
        listing.info.undeclared = config.tools.open_world.is_none()
            && listing.info.tools.iter().any(|tool| tool.annotations.open_world.is_none());
        listing
    }

    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.info.tools.iter().find(|tool| tool.name == name)
    }

    fn input_schema(&self, tool: &str, schema: &Value) -> Option<InputSchema> {
        let known = &self.tool(tool)?.input_schema;
        (**known == *schema).then(|| known.clone())
    }

    fn output(&self, tool: &str, schema: &Value) -> Option<Arc<Checker>> {
        self.outputs.get(tool).filter(|known| known.schema() == schema).cloned()
    }

    fn add(&mut self, tool: Value, policy: &ToolPolicy, before: Option<&Self>) {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or("(without a name)");
        let is_known = self.tool(name).is_some();
        let name = text::cut(&text::one_line(name), MAX_NAME_CHARS);
        let read = if is_known { Err(Rejected::Twice) } else { read(tool, policy, before) };
        match read {
            Ok((definition, output)) => {
                self.outputs.extend(output.map(|output| (definition.name.clone(), output)));
                self.info.tools.push(definition);
            }
            Err(reason) => self.info.rejected_tools.push((name, reason.to_string())),
        }
    }

    /// Reports names in the servers file that the server does not list: misspelt, or gone.
    fn report_missing(&mut self, policy: &ToolPolicy) {
        let mut missing = policy.named();
        missing.retain(|name| {
            let mut rejected = self.info.rejected_tools.iter();
            self.tool(name).is_none() && rejected.all(|(known, _)| known != name)
        });
        let reason = "named in the servers file, but the server does not list it";
        let missing = missing.into_iter().map(|name| (name.to_owned(), reason.to_owned()));
        self.info.rejected_tools.extend(missing);
    }
}

/// Why a tool is left out of the list.
#[derive(Debug, thiserror::Error)]
enum Rejected {
    #[error("listed twice")]
    Twice,
    #[error("its definition is longer than {MAX_TOOL_BYTES} bytes")]
    TooLong,
    #[error("its definition contains an invisible character: {}", .0.escape_unicode())]
    Hidden(char),
    #[error("malformed definition: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("its name is empty, too long or contains control characters")]
    Name,
    #[error("its name contains a secret of the server's configuration")]
    Secret,
    #[error("{0}")]
    Policy(&'static str),
    #[error("its {schema} cannot be used: {source}")]
    Schema { schema: &'static str, source: schema::Unusable },
}

fn read(
    tool: Value,
    policy: &ToolPolicy,
    before: Option<&Listing>,
) -> Result<(ToolDefinition, Option<Arc<Checker>>), Rejected> {
    if text::json_bytes(&tool) > MAX_TOOL_BYTES {
        return Err(Rejected::TooLong);
    }
    if let Some(letter) = hidden::find(&tool) {
        return Err(Rejected::Hidden(letter));
    }
    let mut tool: Tool = serde_json::from_value(tool)?;
    // A tool without arguments.
    if matches!(tool.input_schema, Value::Null | Value::Bool(true)) {
        tool.input_schema = json!({ "type": "object" });
    }
    let well_named = !tool.name.trim().is_empty()
        && tool.name.chars().count() <= MAX_NAME_CHARS
        && !tool.name.contains(char::is_control);
    if !well_named {
        return Err(Rejected::Name);
    }
    // Under this name the server does not know it.
    if tool.name.contains(REDACTED) {
        return Err(Rejected::Secret);
    }
    if let Some(reason) = policy.refusal(&tool.name) {
        return Err(Rejected::Policy(reason));
    }
    let unusable = |schema| move |source| Rejected::Schema { schema, source };
    if !tool.input_schema.is_object() {
        return Err(unusable("inputSchema")(schema::Unusable::NoObject));
    }
    let input_schema = before
        .and_then(|before| before.input_schema(&tool.name, &tool.input_schema))
        .unwrap_or_else(|| tool.input_schema.into());
    let input_schema = match input_schema.checker() {
        Ok(_) => input_schema,
        Err(reason) => {
            let repaired = InputSchema::from(schema_repair::repaired(&input_schema));
            let is_usable = repaired.checker().is_ok();
            let repaired = is_usable.then_some(repaired);
            repaired.ok_or_else(|| unusable("inputSchema")(reason.clone()))?
        }
    };
    let output = match &tool.output_schema {
        Some(schema) => match before.and_then(|before| before.output(&tool.name, schema)) {
            Some(output) => Some(output),
            None => Some(Arc::new(compiled(schema).map_err(unusable("outputSchema"))?)),
        },
        None => None,
    };
    let hints = &tool.annotations;
    let annotations = ToolAnnotations {
        read_only: hint(hints, "readOnlyHint"),
        destructive: hint(hints, "destructiveHint"),
        idempotent: hint(hints, "idempotentHint"),
        open_world: hint(hints, "openWorldHint"),
    };
    let title = hints["title"].as_str().map(str::to_owned);
    let call_policy = CallPolicy::of(policy, &tool.name, &annotations);
    let own = policy.by_name.get(&tool.name);
    let description = text::cut(&tool.description.unwrap_or_default(), MAX_DESCRIPTION_CHARS);
    let definition = ToolDefinition {
        repeatable: call_policy.repeatable,
        needs_approval: call_policy.needs_approval,
        approval_timeout_sec: own.and_then(|own| own.approval_timeout_sec).map(NonZeroU32::get),
        approved_in_advance: call_policy.approved_in_advance,
        read_only: call_policy.read_only,
        open_world: call_policy.open_world,
        title: tool.title.or(title),
        description,
        input_schema,
        output_schema: tool.output_schema,
        annotations,
        name: tool.name,
    };
    Ok((definition, output))
}

/// Compiles the schema of a tool's results, repaired if it cannot be used as it is.
fn compiled(schema: &Value) -> Result<Checker, schema::Unusable> {
    schema::compile(Arc::new(schema.clone())).or_else(|reason| {
        let repaired = schema::compile(Arc::new(schema_repair::repaired(schema)));
        repaired.map_err(|_| reason)
    })
}

#[derive(Clone)]
pub(crate) struct Opened {
    pub session: Arc<Session>,
    pub listing: Arc<Listing>,
}

impl Opened {
    pub fn via(&self, request_id: String) -> Via {
        self.session.via(self.listing.info.protocol_version.clone(), request_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::listing_tests::listing_of;

    #[test]
    fn only_new_definitions_of_a_repeated_list_are_compiled() {
        let tool = |name: &str, input: Value| json!({ "name": name, "inputSchema": input, "outputSchema": { "type": "object" } });
        let plain = json!({ "type": "object" });
        let strict = json!({ "required": ["a"] });
        let words = json!([tool("same", plain.clone()), tool("other", plain.clone())]);
        let first = listing_of(&words, None);
        let words = json!([tool("other", strict), tool("same", plain)]);
        let second = listing_of(&words, Some(&first));
        let checker = |listing: &Listing, tool: &str| {
            let schema = &listing.tool(tool).unwrap().input_schema;
            std::ptr::from_ref(schema.checker().unwrap())
        };
        assert_eq!(checker(&first, "same"), checker(&second, "same"));
        assert_ne!(checker(&first, "other"), checker(&second, "other"));
        assert!(Arc::ptr_eq(&first.outputs["other"], &second.outputs["other"]));
        // What an agent holds is what the list was checked with.
        let removed = second.info.clone().tools.remove(1);
        assert_eq!(
            std::ptr::from_ref(removed.input_schema.checker().unwrap()),
            checker(&first, "same")
        );
    }
}
