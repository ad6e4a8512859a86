//! The form of tools for a model: names that its API accepts, schemas without fields for generators, and the agent's
//! own tools.

use serde_json::{Map, Value, json};

use perihelion_llm::ToolSpec;
use perihelion_mcp::ToolDefinition;

/// Longest name of a function in a model request.
const MAX_CHARS: usize = 64;

/// The names under which a server's tools are shown to the model, in the order of the tools.
#[derive(Debug)]
pub(super) struct ToolNames(Vec<String>);

impl ToolNames {
    /// Keeps valid names, and changes the rest; each is unique and differs from built-in tools.
    pub(super) fn new(tools: &[ToolDefinition]) -> Self {
        let mut shown: Vec<Option<String>> =
            tools.iter().map(|tool| is_fit(&tool.name).then(|| tool.name.clone())).collect();
        for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| !is_fit(&tool.name)) {
            let fitting = |letter| if is_allowed(letter) { letter } else { '_' };
            let mut name: String = tool.name.chars().map(fitting).collect();
            let is_taken = |name: &str| shown.iter().flatten().any(|other| other == name);
            if name.len() > MAX_CHARS || is_built_in(&name) || is_taken(&name) {
                // The hash of the whole name is as good as unique, and the same in every process.
                let hash = blake3::hash(tool.name.as_bytes()).to_hex();
                name.truncate(MAX_CHARS - 9);
                name = format!("{name}_{}", &hash[..8]);
            }
            shown[index] = Some(name);
        }
        Self(shown.into_iter().flatten().collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn find<'t>(
        &self,
        name: &str,
        tools: &'t [ToolDefinition],
    ) -> Option<&'t ToolDefinition> {
        let index = self.0.iter().position(|shown| shown == name);
        index
            .and_then(|index| tools.get(index))
            .or_else(|| tools.iter().find(|tool| tool.name == name && !is_built_in(name)))
    }
}

fn is_allowed(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn is_fit(name: &str) -> bool {
    (1..=MAX_CHARS).contains(&name.len()) && name.chars().all(is_allowed) && !is_built_in(name)
}

pub(super) const READ_ARTIFACT: &str = "perihelion_read_artifact";

/// Finds tools of an agent that has too many to be shown all.
pub(super) const FIND_TOOL: &str = "perihelion_find_tool";

/// Hands a task back that is for another agent.
pub(super) const NOT_MINE: &str = "perihelion_not_mine";

/// Asks the user, where no supervisor could before the work.
pub(super) const ASK_USER: &str = "perihelion_ask_user";

/// Returns whether a name is that of an agent's own tool, which calls no server.
pub fn is_built_in(tool: &str) -> bool {
    [READ_ARTIFACT, FIND_TOOL, NOT_MINE, ASK_USER].contains(&tool)
}

pub(super) fn not_mine() -> ToolSpec {
    let about = "Hands the task back because it is not for this agent: none of its tools is made for what the \
                 task asks. Ends your work at once.";
    let reason = "What the task needs that your tools are not made for.";
    of_one_text(NOT_MINE, about.to_owned(), "reason", reason)
}

pub(super) fn ask_user() -> ToolSpec {
    let about = "Asks the user for what is missing.".to_owned();
    of_one_text(ASK_USER, about, "question", "One question")
}

pub(super) fn find_tool(tools: usize) -> ToolSpec {
    let about = format!(
        "Searches all {tools} tools of the server, of which you see those that fit the task best. What it finds \
         can be called from your next answer on. Counts as one of your calls."
    );
    of_one_text(FIND_TOOL, about, "query", "A few words that say what the tool is to do.")
}

fn of_one_text(tool: &str, description: String, argument: &str, about: &str) -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": { argument: { "type": "string", "description": about } },
        "required": [argument],
    });
    ToolSpec { name: tool.to_owned(), description, parameters }
}

/// Keywords whose values are schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose values are schemas, or lists of them.
const NESTED: &str =
    "items prefixItems additionalProperties anyOf oneOf allOf not contains propertyNames";

/// Returns a schema without `$schema`, `$comment`, sizes of numbers as formats, `default: null`, superfluous titles, and
/// null as a value of optional properties. Calls are still checked by the whole schema.
pub(super) fn shown(schema: &Value) -> Value {
    without_noise(None, schema)
}

/// `name` is that of a property, empty for an item in a list of schemas, and `None` for the whole.
fn without_noise(name: Option<&str>, schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let kept = keywords.iter().filter(|(key, value)| !is_noise(name, keywords, key, value));
            let mut kept: Map<String, Value> =
                kept.map(|(key, value)| (key.clone(), inner(key, value))).collect();
            let required = keywords.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
            if let Some(Value::Object(properties)) = kept.get_mut("properties") {
                let optional = properties.iter_mut().filter(|(name, _)| !is_required(name));
                optional.for_each(|(_, schema)| drop_null(schema));
            }
            Value::Object(kept)
        }
        Value::Array(schemas) => schemas.iter().map(|schema| without_noise(name, schema)).collect(),
        other => other.clone(),
    }
}

/// Removes null from the types of a schema with others.
fn drop_null(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = keywords.get_mut("type")
        && kinds.len() > 1
    {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            keywords.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(parts)) = keywords.get_mut("anyOf")
        && parts.len() > 1
    {
        parts.retain(|part| part["type"] != "null");
        if let [Value::Object(only)] = parts.as_slice() {
            let only = only.clone();
            keywords.remove("anyOf");
            for (key, value) in only {
                keywords.entry(key).or_insert(value);
            }
        }
    }
}

fn inner(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(schemas) if NAMED.contains(&key) => {
            let shown = |(name, schema): (&String, &Value)| {
                (name.clone(), without_noise(Some(name), schema))
            };
            Value::Object(schemas.iter().map(shown).collect())
        }
        _ if NESTED.split(' ').any(|nested| nested == key) => without_noise(Some(""), value),
        _ => value.clone(),
    }
}

fn is_noise(name: Option<&str>, keywords: &Map<String, Value>, key: &str, value: &Value) -> bool {
    match (key, value) {
        ("$schema" | "$comment", _)
        | ("default", Value::Null)
        | ("additionalProperties", Value::Bool(false)) => true,
        ("minimum", minimum) => {
            let format = keywords.get("format").and_then(Value::as_str).unwrap_or_default();
            *minimum == 0 && format.starts_with("uint")
        }
        ("format", Value::String(format)) => {
            let digits = format.trim_start_matches('u').trim_start_matches("int");
            digits.len() < format.len() && digits.chars().all(|c| c.is_ascii_digit())
        }
        ("title", Value::String(title)) => {
            let about = keywords.get("description").and_then(Value::as_str).unwrap_or_default();
            name.is_none_or(|name| words(title) == words(name))
                || words(about).contains(&words(title))
        }
        _ => false,
    }
}

/// Returns the letters and digits of a name, in small letters.
fn words(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolDefinition {
        serde_json::from_value(serde_json::json!({ "name": name, "input_schema": {} })).unwrap()
    }

    #[test]
    fn names_that_models_refuse_are_made_fit_unique_and_lead_back() {
        let long = "x".repeat(100);
        let tools: Vec<ToolDefinition> =
            ["files/read", "files_read", "lies das Buch", READ_ARTIFACT, &long, "größe", NOT_MINE]
                .map(tool)
                .into();
        let names = ToolNames::new(&tools);
        let shown: Vec<&str> = names.iter().collect();
        assert!(shown.iter().all(|name| is_fit(name)), "{shown:?}");
        assert_eq!(shown[1], "files_read");
        assert!(shown[0].starts_with("files_read_"), "{shown:?}");
        assert_eq!(shown[2], "lies_das_Buch");
        assert_eq!(shown[5], "gr__e");
        for (tool, name) in tools.iter().zip(&shown) {
            assert_eq!(names.find(name, &tools).unwrap().name, tool.name);
        }
        assert_eq!(names.find("files/read", &tools).unwrap().name, "files/read");
        assert!(names.find("other", &tools).is_none());
        assert!(names.find(NOT_MINE, &tools).is_none(), "the agent's own tool is meant");
    }
}

#[cfg(test)]
mod tool_schema_tests {
    use serde_json::json;

    use super::*;

    /// S1.06: a model sees the fields that it needs to call a tool, and no bytes for generators.
    #[test]
    fn the_parts_of_a_schema_that_a_call_needs_stay_and_the_rest_is_removed() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "SearchArguments", "type": "object",
            "properties": {
                "title": { "title": "Title", "type": "string", "default": null },
                "max_results": { "title": "Max Results", "type": ["integer", "null"], "format": "uint32", "minimum": 0 },
                "unit": { "title": "One of the SI", "type": "string" },
                "sum": { "title": "Amount in cents", "description": "What is paid.", "type": "integer" },
                "total": { "title": "Paid", "description": "What is paid.", "type": "integer" },
                "when": { "title": "When", "description": "Begin.", "type": "string", "format": "date", "default": "today" },
                "list": { "type": "array", "items": { "title": "Item", "type": "integer", "format": "int64" } },
                "how": { "oneOf": [{ "const": "a", "title": "By air" }] },
                "whom": { "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "A name." },
                "need": { "type": ["string", "null"], "minimum": 0 },
            },
            "required": ["title", "need"], "additionalProperties": false,
            "$defs": { "Kind": { "title": "Kind", "enum": ["title", null] } },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "max_results": { "type": "integer" },
                "unit": { "title": "One of the SI", "type": "string" },
                "sum": { "title": "Amount in cents", "description": "What is paid.", "type": "integer" },
                "total": { "description": "What is paid.", "type": "integer" },
                "when": { "description": "Begin.", "type": "string", "format": "date", "default": "today" },
                "list": { "type": "array", "items": { "title": "Item", "type": "integer" } },
                "how": { "oneOf": [{ "const": "a", "title": "By air" }] },
                "whom": { "description": "A name.", "type": "string" },
                "need": { "type": ["string", "null"], "minimum": 0 },
            },
            "required": ["title", "need"], "$defs": { "Kind": { "enum": ["title", null] } },
        });
        assert_eq!(shown(&schema), expected);
    }
}
