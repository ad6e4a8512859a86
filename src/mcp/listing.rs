//! Lists a server's tools page by page, keeping the good ones and reporting the bad ones.
//!
//! `list_all_tools` of rmcp neither ends on a cursor that repeats nor survives one malformed tool.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, RequestMetaObject};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ServerInfo, ToolAnnotations, ToolDefinition,
    definitions::{self, Definitions, Identity},
    gate::Gate,
    hidden, menu,
    request::{self, Bounds, Failure},
    schema::{self, Checker},
    servers_file::{ServerConfig, ToolPolicy},
    session::Session,
};
use crate::clock;

/// A list of more pages is one that does not end.
const MAX_PAGES: usize = 100;
/// No model can choose among more tools.
const MAX_TOOLS: usize = 2000;
/// More than all of them together need.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;
/// A longer definition would crowd the model's context; as JSON.
const MAX_TOOL_BYTES: usize = 64 * 1024;
const MAX_NAME_CHARS: usize = 128;
/// Of a tool's description; what is beyond is cut, and its end shows it.
const MAX_DESCRIPTION_CHARS: usize = 8_000;

/// A server's tools, ready to be called.
pub(super) struct Listing {
    pub info: ServerInfo,
    /// Compiled output schemas, by tool name.
    pub outputs: HashMap<String, Arc<Checker>>,
    pub definitions: Definitions,
}

/// Asks for all pages within the server's start-up timeout.
///
/// # Errors
/// The reason in words, when the server does not answer or answers with no tool list at all.
pub(super) async fn fetch(session: &Session, config: &ServerConfig) -> Result<Definitions, String> {
    let mut definitions = introduce(session, config);
    let mut seen = HashSet::new();
    let mut cursor = None;
    let mut bytes = 0;
    let started = clock::monotonic();
    for _ in 0..MAX_PAGES {
        let left = config.startup_timeout.saturating_sub(started.elapsed());
        let page = page(session, cursor, left, config.startup_timeout).await?;
        bytes += page.tools.iter().map(|tool| tool.to_string().len()).sum::<usize>();
        if bytes > MAX_LIST_BYTES {
            return Err(format!(
                "its tool list is longer than can be used, in bytes: {MAX_LIST_BYTES}"
            ));
        }
        if definitions.tools.len() + page.tools.len() > MAX_TOOLS {
            return Err(format!("it lists more tools than can be used, at most: {MAX_TOOLS}"));
        }
        definitions.ttl_ms = page.ttl_ms.or(definitions.ttl_ms);
        let tools = page.tools.into_iter().map(|tool| config.secrets.redact_json(tool));
        definitions.tools.extend(tools);
        let Some(next) = page.next_cursor else { return Ok(definitions) };
        if !seen.insert(next.clone()) {
            // What was listed so far is kept: the pages from here on are those already seen.
            let reason = "the server repeated a cursor, so the list may not be whole".to_owned();
            definitions.incomplete = Some(reason);
            return Ok(definitions);
        }
        cursor = Some(next);
    }
    Err(format!("its tool list does not end after this many pages: {MAX_PAGES}"))
}

/// One page; tools stay JSON until each is read on its own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Value>,
    next_cursor: Option<String>,
    #[serde(default)]
    ttl_ms: Option<u64>,
}

async fn page(
    session: &Session,
    cursor: Option<String>,
    left: Duration,
    whole: Duration,
) -> Result<Page, String> {
    let bounds = Bounds { idle: left, total: left };
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
    let sent = request::send(session, request, RequestMetaObject::new(), bounds).await;
    let result = match sent {
        Ok(answer) => answer.result,
        Err(Failure::NotHandedOver | Failure::Closed) => {
            return Err(format!("the tool list did not arrive: {}", session.why_ended().await));
        }
        Err(Failure::TimedOut(_)) => {
            let seconds = whole.as_secs_f64();
            return Err(format!(
                "the tool list did not arrive within the start-up timeout: {seconds} s"
            ));
        }
        Err(Failure::Service(error)) => {
            return Err(format!("it refused to list its tools: {}", super::http::chain(&error)));
        }
    };
    serde_json::to_value(result)
        .and_then(serde_json::from_value)
        .map_err(|error| format!("its answer is not a tool list: {error}"))
}

fn introduce(session: &Session, config: &ServerConfig) -> Definitions {
    let peer = session.peer.peer_info();
    let server = peer.as_ref().and_then(|peer| peer.server_info.as_ref());
    let clean = |text: &str| config.secrets.redact(text);
    let identity = server.map(|server| Identity {
        name: clean(&server.name),
        version: clean(&server.version),
        title: server.title.as_deref().map(clean),
        description: server.description.as_deref().map(clean),
    });
    let said = peer.as_ref().and_then(|peer| peer.instructions.as_deref());
    let instructions = said.map(clean);
    Definitions {
        protocol_version: peer
            .as_ref()
            .map(|peer| peer.protocol_version.to_string())
            .unwrap_or_default(),
        identity: identity.unwrap_or_default().bounded(),
        instructions: instructions.map(definitions::bounded),
        tools: Vec::new(),
        incomplete: None,
        ttl_ms: None,
        listed_at: clock::now(),
    }
}

/// A tool as it stands on the wire; fields unknown here are passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Value,
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Option<Hints>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    title: Option<String>,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

/// Tells whether a tool claims to reach the open world.
fn is_hinted(definitions: &Definitions) -> bool {
    let claims = |tool: &Value| tool["annotations"]["openWorldHint"] == Value::Bool(true);
    definitions.tools.iter().any(claims)
}

impl Listing {
    /// Reads what a server said of itself, as far as the operator lets it.
    pub fn of(definitions: Definitions, config: &ServerConfig) -> Self {
        let Identity { name, version, .. } = &definitions.identity;
        let open_world = config.tools.open_world == Some(true);
        // What anybody may have written stays out of the supervisor's menu.
        let is_strangers =
            open_world || (config.tools.open_world.is_none() && is_hinted(&definitions));
        let said = definitions.own_words().filter(|_| !is_strangers);
        let description = config.description.as_deref().or(said).unwrap_or_default();
        let info = ServerInfo {
            name: config.name.clone(),
            description: config.secrets.redact(description.trim()),
            server_version: hidden::shown(&menu::one_line(&format!("{name} {version}"))),
            protocol_version: definitions.protocol_version.clone(),
            tools: Vec::new(),
            rejected_tools: Vec::new(),
            open_world,
            undeclared: false,
            agent: config.agent.clone(),
        };
        let instructions = definitions.left_out();
        let tools = definitions.tools.clone();
        let mut listing = Self { info, outputs: HashMap::new(), definitions };
        let mut names = HashSet::new();
        for tool in tools {
            listing.add(tool, &config.tools, &mut names);
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

    fn add(&mut self, tool: Value, policy: &ToolPolicy, names: &mut HashSet<String>) {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or("(without a name)");
        let name = menu::cut(&menu::one_line(name), MAX_NAME_CHARS);
        let read = match names.contains(&name) {
            true => Err("listed twice".into()),
            false => read(tool, policy),
        };
        match read {
            Ok((definition, output)) => {
                self.outputs.extend(output.map(|output| (definition.name.clone(), output)));
                names.insert(name);
                self.info.tools.push(definition);
            }
            Err(reason) => self.info.rejected_tools.push((name, reason)),
        }
    }

    /// Reports names in the servers file that the server does not list: misspelt, or gone.
    fn report_missing(&mut self, policy: &ToolPolicy) {
        let info = &mut self.info;
        let listed = info.tools.iter().map(|tool| tool.name.clone());
        let known: HashSet<String> =
            listed.chain(info.rejected_tools.iter().map(|(name, _)| name.clone())).collect();
        for name in policy.named() {
            if !known.contains(name) {
                let reason = "named in the servers file, but the server does not list it";
                info.rejected_tools.push((name.to_owned(), reason.to_owned()));
            }
        }
    }
}

fn read(
    tool: Value,
    policy: &ToolPolicy,
) -> Result<(ToolDefinition, Option<Arc<Checker>>), String> {
    if tool.to_string().len() > MAX_TOOL_BYTES {
        return Err(format!(
            "its definition is longer than can be used, in bytes: {MAX_TOOL_BYTES}"
        ));
    }
    if let Some(letter) = hidden::find(&tool) {
        return Err(format!(
            "its definition holds a character that nobody sees: {}",
            letter.escape_unicode()
        ));
    }
    let tool: Tool =
        serde_json::from_value(tool).map_err(|error| format!("malformed definition: {error}"))?;
    let well_named = !tool.name.trim().is_empty()
        && tool.name.chars().count() <= MAX_NAME_CHARS
        && !tool.name.contains(char::is_control);
    if !well_named {
        return Err("its name is empty, too long or holds control characters".into());
    }
    if let Some(reason) = policy.refusal(&tool.name) {
        return Err(reason.into());
    }
    if !tool.input_schema.is_object() {
        return Err("its inputSchema is not an object".into());
    }
    schema::compile(&tool.input_schema)
        .map_err(|reason| format!("its inputSchema cannot be used: {reason}"))?;
    let output = match &tool.output_schema {
        Some(output) => Some(Arc::new(
            schema::compile(output)
                .map_err(|reason| format!("its outputSchema cannot be used: {reason}"))?,
        )),
        None => None,
    };
    let hints = tool.annotations.unwrap_or_default();
    let annotations = ToolAnnotations {
        read_only: hints.read_only_hint,
        destructive: hints.destructive_hint,
        idempotent: hints.idempotent_hint,
        open_world: hints.open_world_hint,
    };
    let gate = Gate::of(policy, &tool.name, &annotations);
    let description = menu::cut(&tool.description.unwrap_or_default(), MAX_DESCRIPTION_CHARS);
    let definition = ToolDefinition {
        repeatable: gate.repeatable,
        needs_approval: gate.needs_approval,
        approval_timeout_sec: policy.approval_timeouts.get(&tool.name).copied(),
        approved_in_advance: gate.approved_in_advance,
        read_only: gate.read_only,
        open_world: gate.open_world,
        title: tool.title.or(hints.title),
        description,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
        annotations,
        name: tool.name,
    };
    Ok((definition, output))
}
