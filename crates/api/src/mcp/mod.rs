//! The MCP server at `/mcp`: one tool for the supervisor graph, and one for each team.
//!
//! [`router`] has the route. A question to a person is the tool's result, with the ID of its thread; the next call with
//! that ID answers it. Invariant: a call that its client cancels stops its run. Deliberately absent: sessions.

mod messages;
mod own_graph;

use async_trait::async_trait;
use axum::Router;
use axum::body::HttpBody as _;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::tool::schema_for_output;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult,
    ProgressNotificationParam, ProtocolVersion, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::conversation::{self, AnswerPart, Begin, CONTINUES, Conversation, Ending, Outcome};
use super::request_fields::{self, RequestFields};
use super::team;
use crate::http::Refusal;
use perihelion_people::Scope;
use perihelion_runtime::KeptTeam;
use perihelion_service::kept::{Cancel, Run};
use perihelion_service::{Error, Service};
use perihelion_star::{GRAPH, Request, TEAM_PREFIX};
use perihelion_toolbox::{Serving, Toolbox, answer, config, failure};

#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// The question, or the answer to the thread's question.
    question: String,
    /// The thread to continue with, from an earlier result; a new one by default.
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
    /// The events, if `trace` requested them.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Value>,
}

#[derive(Clone)]
struct Star {
    service: Service,
    tool_router: ToolRouter<Self>,
}

#[async_trait]
impl Toolbox for Star {
    fn about(&self) -> ServerConfig {
        let how = "Ask a team of agents. When the status is `interrupted`, the answer is a question: call again with the \
                   thread_id and what is to be answered.";
        config("swarm", "Perihelion", how.to_owned())
    }

    /// Lists the present tools: teams change while the service runs.
    async fn list(&self) -> Result<ListToolsResult, ErrorData> {
        let teams = team::all(&self.service).await.map_err(internal)?;
        let mut tools = self.tool_router.list_all();
        let whole = self.find(GRAPH);
        tools.extend(whole.iter().flat_map(|whole| teams.iter().map(|kept| of_team(whole, kept))));
        let own = self.service.runtime().graphs().skip(1);
        tools.extend(own.map(|graph| own_graph::tool(whole.as_ref(), graph.about())));
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(0))
    }

    fn find(&self, name: &str) -> Option<Tool> {
        if let Some(graph) = self.service.runtime().own_graph(name) {
            return Some(own_graph::tool(self.tool_router.get(GRAPH), graph.about()));
        }
        // The headers of a call are checked by it alone: all tools take the same arguments.
        let is_one = name == GRAPH || name.starts_with(TEAM_PREFIX);
        self.tool_router.get(GRAPH).filter(|_| is_one).cloned()
    }

    async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let forbidden = |error: Error| ErrorData::invalid_request(error.to_string(), None);
        self.service.permit(Scope::Run).map_err(forbidden)?;
        let name = request.name.to_string();
        let own = self.service.runtime().own_graph(&name);
        if let Some(graph) = own.filter(|graph| graph.about().messages.is_none()) {
            return own_graph::call(self, graph.as_ref(), request, context).await;
        }
        let is_named = own.is_some()
            || name.starts_with(TEAM_PREFIX) && {
                let teams = team::all(&self.service).await.map_err(internal)?;
                teams.iter().any(|kept| kept.team.agent_name() == name)
            };
        if is_named {
            request.name = GRAPH.into();
            request.arguments.get_or_insert_default().insert(TEAM.to_owned(), name.into());
        }
        self.tool_router.call(ToolCallContext::new(self, request, context)).await
    }
}

const TEAM: &str = "team";

fn of_team(whole: &Tool, kept: &KeptTeam) -> Tool {
    let design = &kept.team.design;
    let title = Some(design.name.clone());
    asked_like(whole, kept.team.agent_name(), title, design.description.clone())
}

/// Makes the tool of a team or graph that is asked questions: that of the star, without the choice of a team.
fn asked_like(whole: &Tool, name: String, title: Option<String>, description: String) -> Tool {
    let mut schema = (*whole.input_schema).clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.remove(TEAM);
    }
    let mut tool = whole.clone();
    tool.name = name.into();
    tool.title = title;
    tool.description = Some(description.into());
    tool.input_schema = schema.into();
    tool
}

fn call_metadata(service: &Service, context: &RequestContext<RoleServer>) -> Value {
    let headers = context.extensions.get::<Parts>().map(|parts| parts.headers.clone());
    let call = messages::call_key(service, &headers.unwrap_or_default(), &json!(context.id));
    json!({ "created_by": "mcp", "mcp": call })
}

fn internal(Refusal(_, why): Refusal) -> ErrorData {
    ErrorData::internal_error(why, None)
}

#[tool_router]
impl Star {
    /// Asks the star.
    #[tool(
        description = "Asks a supervised team of agents a question. Returns the answer and its thread ID.",
        output_schema = schema_for_output::<Answered>()
    )]
    async fn swarm(
        &self,
        Parameters(ask): Parameters<Ask>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        match self.ask(ask, context).await {
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

    async fn ask(
        &self,
        ask: Ask,
        context: RequestContext<RoleServer>,
    ) -> Result<Answered, Refusal> {
        let turn = Request { question: ask.question, ..Request::default() };
        let turn = ask.fields.applied_to(&self.service, turn)?;
        let on = match ask.thread_id {
            Some(id) => {
                (id.parse().map_err(|_| Refusal::invalid("thread_id must be a UUID"))?, false)
            }
            None => self.service.thread_for_turn(None, &json!({})).await?,
        };
        let begin = Begin::on(on, call_metadata(&self.service, &context));
        let run = conversation::begin(&self.service, begin, turn).await?;
        let outcome = self.followed(&run, context).await?;
        let status = status_after(outcome.ending)?;
        let mut more = request_fields::asked_for(&self.service, &run).await?;
        Ok(Answered {
            thread_id: run.thread.to_string(),
            status: status.to_owned(),
            answer: outcome.text,
            data: more.remove("data"),
            trace: more.remove("trace"),
        })
    }

    /// Waits for the end of a run, and reports each node that begins to a client that asked for progress.
    async fn followed(
        &self,
        run: &Run,
        context: RequestContext<RoleServer>,
    ) -> Result<Outcome, Refusal> {
        let mut conversation = Conversation::follow(&self.service, run.clone());
        let token = context.meta.get_progress_token();
        // Since this version a client cancels a call by closing its stream; before, it may only have lost it.
        let is_newer = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let mut progress = 0.0;
        loop {
            let part = tokio::select! {
                part = conversation.next() => part,
                () = context.ct.cancelled(), if is_newer => {
                    self.service.cancel(run, Cancel::Interrupt).await?;
                    return Ok(conversation.outcome().await);
                }
            };
            match (part, &token) {
                (Some(AnswerPart::End(outcome)), _) => return Ok(outcome),
                (Some(AnswerPart::Started(node)), Some(token)) => {
                    progress += 1.0;
                    let report = ProgressNotificationParam::new(token.clone(), progress)
                        .with_message(format!("{node} is working"));
                    // A client that is gone misses it.
                    let _ = context.peer.notify_progress(report).await;
                }
                (Some(_), _) => {}
                (None, _) => return Ok(conversation.outcome().await),
            }
        }
    }
}

/// Returns the status that a tool's result has after a run, or why there is no result.
fn status_after(ending: Ending) -> Result<&'static str, Refusal> {
    match ending {
        Ending::Answered => Ok("done"),
        Ending::Asks => Ok("interrupted"),
        Ending::Failed(why) => Err(Refusal::invalid(why)),
        Ending::Cancelled => Err(Refusal::invalid("the run was cancelled")),
        Ending::Continues => Err(Refusal::invalid(CONTINUES)),
    }
}

/// Makes the route; hosts and origins were checked before it.
pub(super) fn router(service: Service) -> Router {
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_cancellation_token(service.stop().child_token());
    let star = Serving::new(Star { service: service.clone(), tool_router: Star::tool_router() });
    let sessions = std::sync::Arc::new(NeverSessionManager::default());
    Router::new()
        .route_service(
            "/mcp",
            StreamableHttpService::new(move || Ok(star.clone()), sessions, config),
        )
        .layer(from_fn_with_state(service, messages::read))
        .layer(map_response(with_kind))
}

/// Names the content type of a refusal in words.
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
pub(super) struct Message {
    jsonrpc: String,
    method: String,
    id: Option<serde_json::Number>,
    params: Option<serde_json::Map<String, serde_json::Value>>,
}
