//! The three tools: find, describe, call.

use perihelion_openapi::{Base, Catalogue, Finder, Operation, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::adjust::{CONTEXT, Context};
use super::calls::{Api, Call, Called};
use super::client::Client;
use super::{Error, Options, Result};
use perihelion_toolbox::prelude::*;
use perihelion_toolbox::{Serving, answer, config, failure, respond};

/// Default for the number of listed operations.
const FOUND: usize = 12;
/// Most operations listed.
const MOST_FOUND: usize = 50;
/// Passages of documentation listed with them.
const PASSAGES: usize = 3;
/// Bytes of a body in the text for a model; the structured result has all of it.
const SHOWN: usize = 16 << 10;

#[derive(Deserialize, JsonSchema)]
struct Find {
    /// What the operation should do, in words; names of things and of parameters help.
    query: String,
    /// Most operations returned; 12 by default.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct Describe {
    /// Name of an operation as find_operations lists it, or its method and path: `GET /users/{id}`.
    operation: String,
}

#[derive(Serialize, JsonSchema)]
struct Operations {
    operations: Vec<Listed>,
    /// Passages of the documentation that fit the query.
    documentation: Vec<Passage>,
    /// Number of operations that the API has.
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// Its name.
    operation: String,
    method: String,
    path: String,
    summary: String,
    /// Names of the parameters that must be given, with their place.
    required: Vec<String>,
    /// The path parameter of another listed operation that this one yields.
    yields: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Passage {
    title: String,
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Described {
    /// What the operation takes and answers.
    description: Value,
}

pub struct Server {
    api: Api,
}

impl Api {
    pub fn open(options: &Options) -> Result<Self> {
        let path = options.spec.clone();
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Error::Spec { path: path.clone(), source })?;
        let catalogue =
            Catalogue::read(&text).map_err(|source| Error::Description { path, source })?;
        if catalogue.operations.is_empty() && catalogue.snippets.is_empty() {
            let source = perihelion_openapi::Error::NoOperations;
            return Err(Error::Description { path: options.spec.clone(), source });
        }
        for base in options.base_url.iter().chain(&options.allow_base) {
            Base::parse(base)?;
        }
        let finder = Finder::new(&catalogue);
        let client = Client::open(options)?;
        Ok(Self { catalogue, finder, client, options: options.clone() })
    }
}

impl Server {
    pub fn open(options: &Options) -> Result<Serving> {
        let api = Api::open(options)?;
        let catalogue = &api.catalogue;
        let title = if catalogue.title.is_empty() { "an HTTP API" } else { &catalogue.title };
        let text = format!(
            "Calls {title} ({} operations). First find_operations with what is wanted, then describe_operation where parameters are \
             unclear, then read_operation for what only reads, call_operation for what changes something.",
            catalogue.operations.len()
        );
        let about = config("api", title, text);
        Ok(Serving::fixed(Self { api }, Self::tool_router(), about))
    }
}

#[tool_router]
impl Server {
    #[tool(
        description = "Finds the operations of the API that fit a question, best first. Where one needs an id that people do not know, the operation that yields it is listed too (`yields`).",
        output_schema = schema_for_output::<Operations>(),
        annotations(title = "Find operations", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn find_operations(&self, Parameters(input): Parameters<Find>) -> CallToolResult {
        let api = &self.api;
        let limit = input.limit.unwrap_or(FOUND).clamp(1, MOST_FOUND);
        let found = api.finder.find(&api.catalogue, &input.query, limit);
        let operations: Vec<Listed> =
            found.iter().map(|found| listed(found.operation, found.yields)).collect();
        let passages = api.finder.snippets(&api.catalogue, &input.query, PASSAGES);
        let documentation = passages
            .iter()
            .map(|passage| Passage { title: passage.title.clone(), text: passage.text.clone() });
        let found = Operations {
            operations,
            documentation: documentation.collect(),
            total: api.catalogue.operations.len(),
        };
        let text = listing(&found);
        answer(&found, text)
    }

    #[tool(
        description = "Describes one operation: its parameters, body and answer with their schemas.",
        output_schema = schema_for_output::<Described>(),
        annotations(title = "Describe an operation", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn describe_operation(&self, Parameters(input): Parameters<Describe>) -> CallToolResult {
        let catalogue = &self.api.catalogue;
        let described = catalogue.operation(&input.operation).map_err(Error::from);
        let described = described.map(|it| Described { description: describe(catalogue, it) });
        respond(described, |described| described.description.to_string())
    }

    #[tool(
        description = "Sends one request that only reads (GET, HEAD, OPTIONS, and what the operator lists), and returns the answer's status, headers and body. As call_operation otherwise.",
        output_schema = schema_for_output::<Called>(),
        annotations(title = "Read by an operation", read_only_hint = true, idempotent_hint = true, open_world_hint = true)
    )]
    async fn read_operation(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<Call>,
    ) -> CallToolResult {
        self.send(&meta, input, false).await
    }

    #[tool(
        description = "Sends one request to the API and returns the answer's status, headers and body. Credentials are added by the server. All required parameters must be given; what is missing is named.",
        output_schema = schema_for_output::<Called>(),
        annotations(title = "Call an operation", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = true)
    )]
    async fn call_operation(
        &self,
        meta: RequestMetaObject,
        Parameters(input): Parameters<Call>,
    ) -> CallToolResult {
        self.send(&meta, input, true).await
    }
}

impl Server {
    async fn send(
        &self,
        meta: &RequestMetaObject,
        mut input: Call,
        may_write: bool,
    ) -> CallToolResult {
        let beside = meta.get(CONTEXT).and_then(Value::as_object);
        let given = input.context.take();
        let is_argument = given.is_some() || beside.is_none();
        let mut entries = given.unwrap_or_default();
        entries.extend(beside.cloned().unwrap_or_default());
        let context = Context { entries, is_argument };
        match self.api.call(input, &context, may_write).await {
            Ok(called) => {
                let mut result = answer(&called, shown(&called));
                // A refusal is an answer with all its data, and still not what was asked for.
                result.is_error = Some(called.status >= 400);
                result
            }
            Err(error) => failure(&error),
        }
    }
}

fn listed(operation: &Operation, yields: Option<&str>) -> Listed {
    let required = operation.parameters.iter().filter(|parameter| parameter.is_required);
    let first = operation.description.lines().next().unwrap_or_default();
    let summary = if operation.summary.is_empty() { first } else { &operation.summary };
    Listed {
        operation: operation.id.clone(),
        method: operation.method.clone(),
        path: operation.path.clone(),
        summary: summary.chars().take(200).collect(),
        required: required
            .map(|parameter| format!("{} ({})", parameter.name, parameter.location.name()))
            .collect(),
        yields: yields.map(str::to_owned),
    }
}

fn listing(found: &Operations) -> String {
    let mut lines = Vec::new();
    for listed in &found.operations {
        let mut line = format!("{}: {} {}", listed.operation, listed.method, listed.path);
        if !listed.summary.is_empty() {
            line.push_str(&format!(" — {}", listed.summary));
        }
        if !listed.required.is_empty() {
            line.push_str(&format!(" [needs {}]", listed.required.join(", ")));
        }
        if let Some(name) = &listed.yields {
            line.push_str(&format!(" [yields {name}]"));
        }
        lines.push(line);
    }
    for passage in &found.documentation {
        lines.push(format!("{}: {}", passage.title, passage.text));
    }
    if lines.is_empty() {
        return format!("None of the {} operations fits; ask with other words.", found.total);
    }
    lines.join("\n")
}

fn shown(called: &Called) -> String {
    let body = match &called.body {
        Value::Null => "(no body)".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut text = format!("status {}\n{body}", called.status);
    if text.len() > SHOWN {
        text.truncate(text.floor_char_boundary(SHOWN));
        text.push_str("…\n(the body is longer; the structured result has all that was read)");
    } else if called.truncated {
        text.push_str("\n(there is more than was read)");
    }
    text
}
