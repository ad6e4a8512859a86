//! A site with an MCP server that takes no call without a token, and the authorization server that gives them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header, request::Parts};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use oauth2::{PkceCodeChallenge, PkceCodeVerifier};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// What a client of the operator proves itself with; it must show nowhere.
pub const CLIENT_SECRET: &str = "canary-oauth-client-secret";
/// The same, as the client `machine` sends it.
const BASIC: &str = "Basic bWFjaGluZTpjYW5hcnktb2F1dGgtY2xpZW50LXNlY3JldA==";

/// What the site does, and what was done to it.
#[derive(Default)]
pub struct Life {
    /// Seconds that the next token lives, once; later ones live an hour.
    pub next_life: Option<u64>,
    /// What is said in place of the issuer when the browser is sent back.
    pub false_issuer: Option<String>,
    /// What the server says that it is, in place of what it is.
    pub false_resource: Option<String>,
    /// Requests without a good token are refused without a challenge.
    pub is_curt: bool,
    /// The person says no.
    pub denies: bool,
    /// Refresh tokens are not taken any longer.
    pub bars_refreshes: bool,
    /// The token endpoint is out of order.
    pub is_down: bool,
    /// The server names this authorization server now.
    pub moved_to: Option<String>,
    /// Holds the answers of the token endpoint back.
    pub gate: Option<Arc<Gate>>,
    /// How often the token endpoint was asked.
    pub asked: usize,
    codes: BTreeMap<String, Value>,
    /// Tokens that are good, with their scopes.
    pub tokens: BTreeMap<String, String>,
    /// Refresh tokens that are good, with their scopes.
    pub refresh_tokens: BTreeMap<String, String>,
    count: usize,
    pub registrations: Vec<Value>,
    /// What was asked for at the authorization endpoint.
    pub authorizations: Vec<BTreeMap<String, String>>,
    pub grants: Vec<BTreeMap<String, String>>,
    pub revoked: Vec<String>,
    /// Refresh tokens that were used a second time.
    pub reused: usize,
    /// `Authorization` of every request to the MCP server.
    pub seen: Vec<Option<String>>,
}

/// Where an answer waits.
#[derive(Default)]
pub struct Gate {
    /// Told when one waits.
    pub reached: Notify,
    pub open: Notify,
}

impl Life {
    /// Returns how often tokens were given for a grant.
    pub fn given(&self, grant: &str) -> usize {
        self.grants.iter().filter(|one| one["grant_type"] == grant).count()
    }

    /// Makes every token void, and every login with them.
    pub fn revoke_all(&mut self) {
        self.tokens.clear();
        self.refresh_tokens.clear();
    }

    fn name(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("canary-oauth-{kind}-{}", self.count)
    }
}

pub struct Site {
    /// Address of the MCP server.
    pub url: String,
    pub issuer: String,
    pub life: Arc<Mutex<Life>>,
    _servers: [AbortOnDropHandle<()>; 2],
}

#[derive(Clone)]
struct There {
    life: Arc<Mutex<Life>>,
    server: String,
    issuer: String,
}

impl Site {
    pub async fn start() -> Self {
        let [server, authority] = [listen().await, listen().await];
        let life = Arc::<Mutex<Life>>::default();
        let there = There { life: life.clone(), server: server.0, issuer: authority.0 };
        let service = StreamableHttpService::new(
            || Ok(Greeter),
            Arc::new(LocalSessionManager::default()),
            StreamableHttpServerConfig::default(),
        );
        let mcp = Router::new()
            .nest_service("/mcp", service)
            .layer(middleware::from_fn_with_state(there.clone(), guard))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .with_state(there.clone());
        let oauth = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .with_state(there.clone());
        let serve = |listener: TcpListener, router: Router| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                axum::serve(listener, router).await.unwrap();
            }))
        };
        let servers = [serve(server.1, mcp), serve(authority.1, oauth)];
        Self { url: format!("{}/mcp", there.server), issuer: there.issuer, life, _servers: servers }
    }

    pub fn life(&self) -> std::sync::MutexGuard<'_, Life> {
        self.life.lock().unwrap()
    }
}

async fn listen() -> (String, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (format!("http://{}", listener.local_addr().unwrap()), listener)
}

/// The server's one promise: it says as whom it was called.
#[derive(Clone)]
struct Greeter;

impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap();
        let tool = |name: &'static str| Tool::new(name, "Says as whom.", schema.clone());
        Ok(ListToolsResult::with_all_items(vec![tool("greet"), tool("write")])
            .with_ttl_ms(3_600_000))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let as_whom = parts.and_then(|parts| parts.headers.get(header::AUTHORIZATION)).cloned();
        let text = format!("{} as {:?}", request.name, as_whom.as_ref().map(|it| it.to_str()));
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Lets requests with a good token pass; `write` takes a scope of its own.
async fn guard(State(there): State<There>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let words = parts.headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    let metadata =
        format!("resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", there.server);
    let is_curt = there.life.lock().unwrap().is_curt;
    let scopes = {
        let mut life = there.life.lock().unwrap();
        life.seen.push(words.map(str::to_owned));
        let token = words.and_then(|words| words.strip_prefix("Bearer ")).unwrap_or_default();
        life.tokens.get(token).cloned()
    };
    let Some(scopes) = scopes else {
        if is_curt {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        let challenge = format!("Bearer scope=\"greet\", {metadata}");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    };
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let writes = message["method"] == "tools/call" && message["params"]["name"] == "write";
    if writes && !scopes.split(' ').any(|scope| scope == "write") {
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"write\", {metadata}");
        return (StatusCode::FORBIDDEN, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}

async fn resource(State(there): State<There>) -> Json<Value> {
    let life = there.life.lock().unwrap();
    let resource = life.false_resource.clone().unwrap_or(format!("{}/mcp", there.server));
    let issuer = life.moved_to.clone().unwrap_or(there.issuer);
    Json(json!({ "resource": resource, "authorization_servers": [issuer] }))
}

async fn metadata(State(There { issuer, .. }): State<There>) -> Json<Value> {
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "revocation_endpoint": format!("{issuer}/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(State(there): State<There>, Json(wanted): Json<Value>) -> Response {
    let mut life = there.life.lock().unwrap();
    let id = life.name("client");
    life.registrations.push(wanted.clone());
    let registered = json!({ "client_id": id, "redirect_uris": wanted["redirect_uris"] });
    (StatusCode::CREATED, Json(registered)).into_response()
}

async fn authorize(
    State(there): State<There>,
    Query(asked): Query<BTreeMap<String, String>>,
) -> Redirect {
    let mut life = there.life.lock().unwrap();
    let code = life.name("code");
    life.codes.insert(code.clone(), json!(asked));
    let issuer = life.false_issuer.clone().unwrap_or(there.issuer.clone());
    let answer = if life.denies { ("error", "access_denied".to_owned()) } else { ("code", code) };
    let back = [answer, ("state", asked["state"].clone()), ("iss", issuer)];
    let back = reqwest::Url::parse_with_params(&asked["redirect_uri"], back).unwrap();
    life.authorizations.push(asked);
    Redirect::to(back.as_str())
}

async fn token(State(there): State<There>, headers: HeaderMap, body: Bytes) -> Response {
    let gate = there.life.lock().unwrap().gate.take();
    let answer = give(&there, &headers, &body);
    if let Some(gate) = gate {
        gate.reached.notify_one();
        gate.open.notified().await;
    }
    answer
}

/// Gives a token for whatever grants it.
fn give(there: &There, headers: &HeaderMap, body: &[u8]) -> Response {
    let asked = form(body);
    let mut life = there.life.lock().unwrap();
    life.asked += 1;
    let refused =
        |why: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": why }))).into_response();
    if life.is_down {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    if asked.get("resource") != Some(&format!("{}/mcp", there.server)) {
        return refused("invalid_target");
    }
    let scopes = match asked["grant_type"].as_str() {
        "authorization_code" => {
            let Some(begun) = life.codes.remove(&asked["code"]) else {
                return refused("invalid_grant");
            };
            let verifier = PkceCodeVerifier::new(asked["code_verifier"].clone());
            let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
            let is_same = |name: &str| begun[name] == asked[name].as_str();
            if begun["code_challenge"] != challenge.as_str()
                || begun["code_challenge_method"] != "S256"
                || !is_same("redirect_uri")
                || !is_same("client_id")
            {
                return refused("invalid_grant");
            }
            begun["scope"].as_str().unwrap_or_default().to_owned()
        }
        "refresh_token" => {
            let Some(scopes) = life.refresh_tokens.remove(&asked["refresh_token"]) else {
                life.reused += 1;
                return refused("invalid_grant");
            };
            if life.bars_refreshes {
                return refused("invalid_grant");
            }
            scopes
        }
        "client_credentials" => {
            let words = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
            if words != Some(BASIC) {
                return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_client" })))
                    .into_response();
            }
            asked.get("scope").cloned().unwrap_or_default()
        }
        _ => return refused("unsupported_grant_type"),
    };
    let access = life.name("access");
    life.tokens.insert(access.clone(), scopes.clone());
    let expires_in = life.next_life.take().unwrap_or(3600);
    let mut given = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": expires_in, "scope": scopes,
        "id_token": "canary-oauth-id-token",
    });
    if asked["grant_type"] != "client_credentials" {
        let refresh = life.name("refresh");
        life.refresh_tokens.insert(refresh.clone(), scopes);
        given["refresh_token"] = json!(refresh);
    }
    life.grants.push(asked);
    Json(given).into_response()
}

async fn revoke(State(there): State<There>, body: Bytes) -> StatusCode {
    let asked = form(&body);
    let mut life = there.life.lock().unwrap();
    life.revoked.push(asked["token"].clone());
    life.revoke_all();
    StatusCode::OK
}

fn form(body: &[u8]) -> BTreeMap<String, String> {
    let url = format!("form:?{}", String::from_utf8_lossy(body));
    reqwest::Url::parse(&url).unwrap().query_pairs().into_owned().collect()
}
