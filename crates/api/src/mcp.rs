//! The star and the teams as an MCP server at `/mcp`: one tool for the star, and one for each team that there is.
//!
//! A question that the star puts to a person comes back in the tool's result with the thread's id; the next call with
//! that id answers it.

use axum::Router;
use axum::body::HttpBody as _;
use axum::http::{HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agent_server::Refusal;
use super::conversation::{self, Begin, CONTINUES, Conversation, Ending};
use super::openapi::Forms;
use super::request_fields::{self, RequestFields};
use super::team;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::KeptTeam;
use perihelion_servers::{Serving, Toolbox, answer, config, failure};
use perihelion_service::{Service, Turn};
use perihelion_star::{GRAPH, TEAM_PREFIX};

#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// The question, or the answer to what the thread asked.
    question: String,
    /// The thread to continue with, from an earlier result; a new one by default.
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(flatten)]
    fields: RequestFields,
}

#[derive(Serialize, JsonSchema)]
struct Answered {
    thread_id: String,
    /// `done`, or `interrupted` when the answer is a question that waits for one.
    status: String,
    answer: String,
    /// The first table that was found, where `include_data` asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// What happened, where `trace` asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Value>,
}

#[derive(Clone)]
struct Star {
    service: Service,
    tool_router: ToolRouter<Self>,
}

impl Toolbox for Star {
    fn router(&self) -> &ToolRouter<Self> {
        &self.tool_router
    }

    fn about(&self) -> ServerConfig {
        let how = "Ask a team of agents. When the status is `interrupted`, the answer is a question: call again with the \
                   thread_id and what is to be answered.";
        config("swarm", "Perihelion", how.to_owned())
    }

    /// Lists what there is now: teams come and go while the service runs.
    async fn list(&self) -> Result<ListToolsResult, ErrorData> {
        let teams = team::all(&self.service).await.map_err(internal)?;
        let mut tools = self.tool_router.list_all();
        let whole = self.find(GRAPH);
        tools.extend(whole.iter().flat_map(|whole| teams.iter().map(|kept| of_team(whole, kept))));
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(0))
    }

    fn find(&self, name: &str) -> Option<Tool> {
        // The headers of a call are checked by it alone: all tools take the same arguments.
        let is_one = name == GRAPH || name.starts_with(TEAM_PREFIX);
        self.tool_router.get(GRAPH).filter(|_| is_one).cloned()
    }

    async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if name.starts_with(TEAM_PREFIX) {
            let teams = team::all(&self.service).await.map_err(internal)?;
            if teams.iter().any(|kept| kept.team.agent_name() == name) {
                request.name = GRAPH.into();
                request.arguments.get_or_insert_default().insert(TEAM.to_owned(), name.into());
            }
        }
        self.tool_router.call(ToolCallContext::new(self, request, context)).await
    }
}

/// The argument that names a team.
const TEAM: &str = "team";

/// Makes the tool of a team: that of the star, but for what is said of it and for the choice of a team.
fn of_team(whole: &Tool, kept: &KeptTeam) -> Tool {
    let design = &kept.team.design;
    let mut schema = (*whole.input_schema).clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.remove(TEAM);
    }
    let mut tool = whole.clone();
    tool.name = kept.team.agent_name().into();
    tool.title = Some(design.name.clone());
    tool.description = Some(design.description.clone().into());
    tool.input_schema = schema.into();
    tool
}

fn internal(Refusal(_, why): Refusal) -> ErrorData {
    ErrorData::internal_error(why, None)
}

#[tool_router]
impl Star {
    /// Asks the star.
    #[tool(
        description = "Asks a supervised team of agents a question, and returns its answer with the thread it was given in.",
        output_schema = schema_for_output::<Answered>()
    )]
    async fn swarm(&self, Parameters(ask): Parameters<Ask>) -> CallToolResult {
        match self.ask(ask).await {
            Ok(answered) => {
                let text = match answered.status.as_str() {
                    "interrupted" => {
                        format!("{}\n\n(thread_id: {})", answered.answer, answered.thread_id)
                    }
                    _ => answered.answer.clone(),
                };
                answer(&answered, text)
            }
            Err(Refusal(_, why)) => failure(&why),
        }
    }

    async fn ask(&self, ask: Ask) -> Result<Answered, Refusal> {
        let turn = Turn { question: ask.question, ..Turn::default() };
        let turn = ask.fields.applied_to(&self.service, turn)?;
        let thread = match ask.thread_id {
            Some(id) => id.parse().map_err(|_| Refusal::invalid("thread_id must be a UUID"))?,
            None => {
                let thread = ThreadId::new();
                self.service.create_thread_for_turn(thread, &json!({})).await?;
                thread
            }
        };
        let metadata = json!({ "created_by": "mcp" });
        let begin = Begin { thread, at: None, turn, metadata, deliveries: Vec::new() };
        let run = conversation::begin(&self.service, begin).await?;
        let outcome = Conversation::follow(&self.service, run.clone()).await?.outcome().await;
        let status = match outcome.ending {
            Ending::Answered => "done",
            Ending::Asks => "interrupted",
            Ending::Failed(why) => return Err(Refusal::invalid(why)),
            Ending::Cancelled => return Err(Refusal::invalid("the run was cancelled")),
            Ending::Continues => return Err(Refusal::invalid(CONTINUES)),
        };
        let mut more = request_fields::asked_for(&self.service, &run).await?;
        Ok(Answered {
            thread_id: thread.to_string(),
            status: status.to_owned(),
            answer: outcome.text,
            data: more.remove("data"),
            trace: more.remove("trace"),
        })
    }
}

/// Makes the route; hosts and origins were checked before it.
pub(super) fn router(service: Service) -> Router {
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_cancellation_token(service.stop().child_token());
    let star = Serving(Star { service, tool_router: Star::tool_router() });
    let sessions = std::sync::Arc::new(NeverSessionManager::default());
    Router::new()
        .route_service(
            "/mcp",
            StreamableHttpService::new(move || Ok(star.clone()), sessions, config),
        )
        .layer(map_response(with_kind))
}

/// Names the kind of what was refused in words.
async fn with_kind(mut response: Response) -> Response {
    let is_empty = response.body().size_hint().exact() == Some(0);
    if response.status().is_client_error() && !is_empty {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().entry(header::CONTENT_TYPE).or_insert(kind);
    }
    response
}

/// A message of the protocol, for its description.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the protocol's own library reads it")]
struct Message {
    jsonrpc: String,
    method: String,
    id: Option<serde_json::Number>,
    params: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Names what the route reads.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<Message>("post /mcp");
}
