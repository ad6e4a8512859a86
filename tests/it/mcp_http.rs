//! MCP servers over streamable HTTP, in this process on a free port.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU16, AtomicUsize, Ordering},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use perihelion::mcp::{CallContext, Error, Pool, PoolOptions, ServersFile, ToolHost, ToolOutcome};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// Serves a router on a free port until the test ends.
async fn serve(router: Router) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, server)
}

fn pool(url: &str, more: &str) -> Pool {
    let env = |name: &str| match name {
        "SERVER_TOKEN" => Some("token-of-the-server".to_owned()),
        "TENANT" => Some("tenant-seven".to_owned()),
        _ => None,
    };
    let file = format!("[mcp_servers.web]\nurl = {url:?}\n{more}");
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &file, &env).unwrap();
    Pool::new(file, PoolOptions::default())
}

async fn call(pool: &Pool, tool: &str) -> Result<ToolOutcome, Error> {
    pool.call("web", tool, Map::new(), CallContext::default()).await
}

/// An old server with sessions, which can be made to forget them, and has one more tool after its first session.
#[derive(Default)]
struct Old {
    sessions: AtomicUsize,
    current: Mutex<Option<String>>,
    calls: AtomicUsize,
    headers: Mutex<HeaderMap>,
    /// How it refuses a session that it forgot, instead of with 404: status, type and words.
    refusal: Mutex<Option<(StatusCode, &'static str, &'static str)>>,
    /// The status of calls in the first session.
    broken: AtomicU16,
    /// Bytes of its answers, if not short ones.
    large: AtomicUsize,
}

impl Old {
    fn router(self: &Arc<Self>) -> Router {
        let refused = || async { StatusCode::METHOD_NOT_ALLOWED };
        let bye = || async { StatusCode::NO_CONTENT };
        let route = post(answer).get(refused).delete(bye);
        Router::new().route("/mcp", route).with_state(self.clone())
    }
}

async fn answer(State(old): State<Arc<Old>>, headers: HeaderMap, body: Bytes) -> Response {
    *old.headers.lock().unwrap() = headers.clone();
    if headers.get(header::AUTHORIZATION).is_none_or(|token| token != "Bearer token-of-the-server")
    {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    }
    let request: Value = serde_json::from_slice(&body).unwrap();
    let id = &request["id"];
    let result = |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    if request["method"] == "initialize" {
        let session = format!("s{}", old.sessions.fetch_add(1, Ordering::SeqCst));
        *old.current.lock().unwrap() = Some(session.clone());
        let greeting = result(json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "0"}
        }));
        return ([("mcp-session-id", session)], greeting).into_response();
    }
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    if session.is_none() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    if session != old.current.lock().unwrap().as_deref() {
        return match *old.refusal.lock().unwrap() {
            Some((status, kind, words)) => {
                (status, [(header::CONTENT_TYPE, kind)], words).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        };
    }
    let broken = StatusCode::from_u16(old.broken.load(Ordering::SeqCst)).ok();
    match request["method"].as_str().unwrap() {
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            let tools = [tool("count"), tool("more")];
            let count = old.sessions.load(Ordering::SeqCst).min(tools.len());
            result(json!({"tools": tools[..count]})).into_response()
        }
        "tools/call" if broken.is_some() && session == Some("s0") => {
            broken.unwrap_or_default().into_response()
        }
        "tools/call" => {
            let count = old.calls.fetch_add(1, Ordering::SeqCst) + 1;
            let more = "x".repeat(old.large.load(Ordering::SeqCst));
            let text = json!({"type": "text", "text": format!("{count}{more}")});
            result(json!({"content": [text]})).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

const TOKEN: &str = "bearer_token_env_var = \"SERVER_TOKEN\"\n";

#[tokio::test]
async fn the_bearer_token_and_the_headers_reach_the_server() {
    let old = Arc::new(Old::default());
    let (url, server) = serve(old.router()).await;
    let headers =
        "http_headers = { X-Plain = \"yes\" }\nenv_http_headers = { X-Tenant = \"TENANT\" }";
    let pool = pool(&url, &format!("{TOKEN}{headers}"));
    let info = pool.scan().await.remove(0).outcome.unwrap();
    assert_eq!(info.protocol_version, "2025-06-18");
    assert_eq!(call(&pool, "count").await.unwrap().text, "1");
    let seen = old.headers.lock().unwrap().clone();
    assert_eq!(
        (&seen["x-plain"], &seen["x-tenant"]),
        (&"yes".parse().unwrap(), &"tenant-seven".parse().unwrap())
    );
    pool.close().await;
    server.abort();
}

#[tokio::test]
async fn a_server_that_requires_a_token_is_reported_with_the_fix() {
    let (url, server) = serve(Arc::new(Old::default()).router()).await;
    let pool = pool(&url, "");
    let error = pool.scan().await.remove(0).outcome.unwrap_err().to_string();
    assert!(error.ends_with("give it a token with bearer_token_env_var"), "{error}");
    pool.close().await;
    server.abort();
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_made_again_and_the_call_runs_once() {
    let old = Arc::new(Old::default());
    let (url, server) = serve(old.router()).await;
    let pool = pool(&url, TOKEN);
    assert_eq!(call(&pool, "count").await.unwrap().text, "1");
    *old.current.lock().unwrap() = None;
    let second = call(&pool, "count").await.unwrap();
    assert_eq!(second.text, "2");
    let via = second.via.unwrap();
    assert_eq!((&*via.transport, via.session_id.as_deref()), ("tcp", Some("s1")));
    assert_eq!(via.protocol_version, "2025-06-18");
    assert_eq!(old.sessions.load(Ordering::SeqCst), 2);
    // It may have been started again with other tools.
    let mut changes = pool.changes();
    let listed = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while pool.known()[0].tools.len() != 2 {
            changes.changed().await.unwrap();
        }
    });
    listed.await.unwrap();
    pool.close().await;
    server.abort();
}

/// Many servers that were started again do not say 404.
#[tokio::test]
async fn a_session_that_a_server_refuses_in_its_own_words_is_made_again() {
    let no_session = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
    let no_greeting = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#;
    for refusal in [
        (StatusCode::BAD_REQUEST, "application/json", no_session),
        (StatusCode::BAD_REQUEST, "application/json", no_greeting),
        (StatusCode::BAD_REQUEST, "text/plain", "Bad Request: No valid session ID provided"),
        (StatusCode::UNAUTHORIZED, "text/plain", "Unauthorized: Session not found"),
    ] {
        let old = Arc::new(Old::default());
        let (url, server) = serve(old.router()).await;
        let pool = pool(&url, TOKEN);
        assert_eq!(call(&pool, "count").await.unwrap().text, "1");
        *old.refusal.lock().unwrap() = Some(refusal);
        *old.current.lock().unwrap() = None;
        assert_eq!(call(&pool, "count").await.unwrap().text, "2", "{refusal:?}");
        assert_eq!(old.sessions.load(Ordering::SeqCst), 2);
        pool.close().await;
        server.abort();
    }
}

#[tokio::test]
async fn the_call_that_tries_a_failing_server_again_has_a_new_session() {
    let old = Arc::new(Old::default());
    let (url, server) = serve(old.router()).await;
    let pool = pool(&url, &format!("{TOKEN}breaker_failures = 2\nbreaker_cooldown_sec = 0.05"));
    old.broken.store(502, Ordering::SeqCst);
    for _ in 0..2 {
        assert!(matches!(call(&pool, "count").await, Err(Error::Unknown { .. })));
    }
    perihelion::clock::sleep(std::time::Duration::from_millis(60)).await;
    assert_eq!(call(&pool, "count").await.unwrap().text, "1");
    pool.close().await;
    server.abort();
}

#[tokio::test]
async fn a_status_that_rejects_the_message_shows_that_the_call_did_not_run() {
    let old = Arc::new(Old::default());
    let (url, server) = serve(old.router()).await;
    let pool = pool(&url, TOKEN);
    for status in [302, 400, 401, 403, 405, 413, 409, 504] {
        old.broken.store(status, Ordering::SeqCst);
        let error = call(&pool, "count").await.unwrap_err();
        let is_refused = matches!(error, Error::Refused { .. });
        assert_eq!(is_refused, status < 409 || status == 413, "{error}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
    pool.close().await;
    server.abort();
}

#[tokio::test]
async fn a_large_answer_arrives_within_the_limit_of_results_and_is_too_large_beyond_it() {
    let old = Arc::new(Old::default());
    let (url, server) = serve(old.router()).await;
    old.large.store(17 << 20, Ordering::SeqCst);
    let large = pool(&url, &format!("{TOKEN}max_result_bytes = 33554432"));
    assert!(!call(&large, "count").await.unwrap().is_error);
    large.close().await;
    let small = pool(&url, TOKEN);
    let outcome = call(&small, "count").await.unwrap();
    assert!(outcome.is_error && outcome.text.contains("raise max_result_bytes"), "{outcome:?}");
    small.close().await;
    server.abort();
}

#[tokio::test]
async fn a_gateway_error_leaves_the_outcome_of_the_call_unknown() {
    let old = Arc::new(Old::default());
    let (url, server) = serve(old.router()).await;
    let pool = pool(&url, TOKEN);
    assert_eq!(call(&pool, "count").await.unwrap().text, "1");
    old.broken.store(502, Ordering::SeqCst);
    let error = call(&pool, "count").await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { reason, .. } if reason.contains("502")), "{error}");
    pool.close().await;
    server.abort();
}

#[tokio::test]
async fn a_dead_server_is_reported_and_its_calls_are_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?key=in-the-address", listener.local_addr().unwrap());
    drop(listener);
    let pool = pool(&url, "");
    let error = pool.scan().await.remove(0).outcome.unwrap_err();
    assert!(matches!(error, Error::Start { .. }));
    assert!(!error.to_string().contains("in-the-address"), "{error}");
    let error = call(&pool, "count").await.unwrap_err();
    assert!(matches!(error, Error::NotSent { .. }), "{error}");
    pool.close().await;
}

#[tokio::test]
async fn a_server_that_disappears_between_calls_leaves_the_next_one_unsent() {
    let old = Arc::new(Old::default());
    let (url, server) = serve(old.router()).await;
    let pool = pool(&url, TOKEN);
    assert_eq!(call(&pool, "count").await.unwrap().text, "1");
    server.abort();
    let _ = server.await;
    let error = call(&pool, "count").await.unwrap_err();
    assert!(matches!(error, Error::NotSent { .. }), "{error}");
    pool.close().await;
}

/// A server of the current protocol.
#[derive(Clone)]
struct Modern;

impl ServerHandler for Modern {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("greet", "Greets.", schema)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let key = context.meta.get("dev.perihelion/idempotency-key").cloned();
        let text = format!("{} with {}", request.name, key.unwrap_or_default());
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[tokio::test]
async fn a_server_of_the_current_protocol_is_discovered_and_called_without_a_session() {
    let service = StreamableHttpService::new(
        || Ok(Modern),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let (url, server) = serve(Router::new().nest_service("/mcp", service)).await;
    let pool = pool(&url, "");
    let info = pool.scan().await.remove(0).outcome.unwrap();
    assert_eq!(info.protocol_version, "2026-07-28");
    assert_eq!(info.tools[0].description, "Greets.");
    let context = CallContext { idempotency_key: "key-1".into(), ..CallContext::default() };
    let outcome = pool.call("web", "greet", Map::new(), context).await.unwrap();
    assert_eq!(outcome.text, "greet with \"key-1\"");
    assert_eq!(outcome.via.unwrap().session_id, None);
    pool.close().await;
    server.abort();
}

/// A server of the current protocol that tells its subscribers when a tool appears.
#[derive(Clone, Default)]
struct Growing(Arc<Grown>);

#[derive(Default)]
struct Grown {
    tools: AtomicUsize,
    notice: tokio::sync::Notify,
}

impl ServerHandler for Growing {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        ServerConfig::new(tools.build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap();
        let count = 1 + self.0.tools.load(Ordering::SeqCst);
        let tools = (0..count).map(|number| Tool::new(format!("t{number}"), "", schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.collect()).with_ttl_ms(3_600_000))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        loop {
            self.0.notice.notified().await;
            self.0.tools.fetch_add(1, Ordering::SeqCst);
            if context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

#[tokio::test]
async fn new_tools_of_a_server_with_the_current_protocol_arrive_by_subscription() {
    let growing = Growing::default();
    let grown = growing.0.clone();
    let service = StreamableHttpService::new(
        move || Ok(growing.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let (url, server) = serve(Router::new().nest_service("/mcp", service)).await;
    let pool = pool(&url, "");
    let tools = |pool: &Pool| pool.known().first().map_or(0, |server| server.tools.len());
    pool.scan().await;
    assert_eq!(tools(&pool), 1);
    let mut changes = pool.changes();
    grown.notice.notify_one();
    let heard = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while tools(&pool) != 2 {
            changes.changed().await.unwrap();
        }
    });
    heard.await.unwrap();
    pool.close().await;
    server.abort();
}

/// A server that speaks HTTP in its own way: types in capitals, events under names, batches, pauses, and numbers as
/// cursors.
async fn speak_oddly(State(posts): State<Arc<AtomicUsize>>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let id = &request["id"];
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let json_in_capitals = [(header::CONTENT_TYPE, "Application/JSON;charset=UTF-8")];
    match request["method"].as_str().unwrap() {
        "server/discover" => StatusCode::BAD_REQUEST.into_response(),
        "initialize" => {
            let greeting = answer(json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "0"}
            }));
            (json_in_capitals, serde_json::to_string_pretty(&greeting).unwrap()).into_response()
        }
        "tools/list" => {
            let tool = json!({"name": "count", "inputSchema": {"type": "object"}});
            let listed = answer(match request["params"]["cursor"].as_str() {
                None => json!({"tools": [tool], "nextCursor": 2, "ttlMs": "60000"}),
                Some(_) => json!({"tools": null, "nextCursor": "", "ttlMs": []}),
            });
            let events = format!(
                "event: ping\ndata: {{}}\n\nevent: endpoint\ndata: /x\n\nevent: message\ndata: {listed}\n\n"
            );
            ([(header::CONTENT_TYPE, "Text/Event-Stream")], events).into_response()
        }
        "tools/call" => match posts.fetch_add(1, Ordering::SeqCst) {
            0 => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "0")]).into_response(),
            1 => {
                let text = json!([{"type": "text", "text": "after a pause"}]);
                (json_in_capitals, json!([answer(json!({"content": text}))]).to_string())
                    .into_response()
            }
            2 => {
                let text = json!([{"type": "text", "text": "under a name"}]);
                let answer = json!({"id": id, "error": null, "result": {"content": text}});
                let events = format!("event: result\ndata: {answer}\n\n");
                ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
            }
            3 => {
                let text = json!([{"type": "text", "text": "accepted and answered"}]);
                (StatusCode::ACCEPTED, Json(answer(json!({"content": text})))).into_response()
            }
            4 => {
                let text = json!([{"type": "text", "text": "events as a text"}]);
                format!(": hello\n\nid: 1\ndata: {}", answer(json!({"content": text})))
                    .into_response()
            }
            _ => {
                let error =
                    json!({"id": "server-error", "error": {"code": "E7", "message": "words"}});
                (StatusCode::UNPROCESSABLE_ENTITY, json_in_capitals, error.to_string())
                    .into_response()
            }
        },
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn a_server_with_an_http_dialect_is_understood() {
    let posts = Arc::new(AtomicUsize::new(0));
    let refused = || async { StatusCode::METHOD_NOT_ALLOWED };
    let route = post(speak_oddly).get(refused).delete(refused);
    let (url, server) = serve(Router::new().route("/mcp", route).with_state(posts.clone())).await;
    let pool = pool(&url, "");
    let info = pool.scan().await.remove(0).outcome.unwrap();
    assert_eq!((info.tools.len(), info.rejected_tools.as_slice()), (1, &[][..]));
    for text in ["after a pause", "under a name", "accepted and answered", "events as a text"] {
        assert_eq!(call(&pool, "count").await.unwrap().text, text);
    }
    let last = call(&pool, "count").await.unwrap();
    assert!(last.is_error && last.text.contains("E7: words"), "{}", last.text);
    assert_eq!(posts.load(Ordering::SeqCst), 6);
    pool.close().await;
    server.abort();
}
