//! `perihelion mcp api`, against a real HTTP server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use crate::client::{Client, start};

#[derive(Default)]
pub(crate) struct Shop {
    pub(crate) logins: AtomicU32,
    busy: AtomicU32,
    /// Number of the login whose token is good.
    pub(crate) good: AtomicU32,
}

pub(crate) type Shared = Arc<Shop>;

async fn serve() -> (String, Shared) {
    let shop = Shared::default();
    let router = Router::new()
        .route("/v1/orders/{id}", get(order).delete(|| async { StatusCode::NO_CONTENT }))
        .route("/v1/orders", get(orders))
        .route("/v1/private", get(private))
        .route("/v1/report", get(report))
        .route("/v1/busy", get(busy))
        .route("/v1/packed", get(packed))
        .route("/v1/moved", get(|| async { (StatusCode::FOUND, [("location", "/v1/orders/7")]) }))
        .route("/v1/split", get(split))
        .route("/v1/echo", get(echo))
        .route("/v1/away", get(|| async { (StatusCode::FOUND, [("location", "/admin")]) }))
        .route("/login", post(login))
        .route("/oauth", post(as_client))
        .fallback(any(|uri: Uri| async move { (StatusCode::NOT_FOUND, uri.path().to_owned()) }))
        .with_state(Arc::clone(&shop));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, shop)
}

async fn order(
    Path(id): Path<String>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Json<Value> {
    let trace = headers.get("x-trace").map(|value| value.to_str().unwrap().to_owned());
    Json(
        json!({"id": id, "trace": trace, "query": query, "authorization": headers.contains_key("authorization")}),
    )
}

async fn orders(RawQuery(query): RawQuery) -> Response {
    let page: u32 =
        query.as_deref().and_then(|query| query.rsplit_once("page=")?.1.parse().ok()).unwrap_or(1);
    let link = format!("</v1/orders?page={}>; rel=\"next\"", page + 1);
    ([("link", link)], Json(json!([{"page": page}]))).into_response()
}

/// A page with two lists, of which neither is the one that is paged.
async fn split() -> Json<Value> {
    Json(json!({"items": [1], "errors": [], "next": "/v1/split?page=2"}))
}

/// Repeats credentials in a header.
async fn echo(headers: HeaderMap) -> Response {
    let given = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap());
    let location = format!("/admin?{}&{}", given("authorization"), given("x-api-key"));
    ([("location", location)], "").into_response()
}

async fn private(State(shop): State<Shared>, headers: HeaderMap) -> Response {
    let wanted = format!("Bearer token-{}", shop.good.load(Ordering::SeqCst));
    match headers.get("authorization").and_then(|value| value.to_str().ok()) {
        Some(given) if given == wanted => Json(json!({"secret": true})).into_response(),
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn login(State(shop): State<Shared>, Json(body): Json<Value>) -> Response {
    if body["password"] != "pass-word-1" {
        return StatusCode::FORBIDDEN.into_response();
    }
    let number = shop.logins.fetch_add(1, Ordering::SeqCst) + 1;
    Json(json!({"idToken": format!("token-{number}"), "expiresIn": "3600"})).into_response()
}

async fn as_client(State(shop): State<Shared>, form: String) -> Response {
    let wanted = ["grant_type=client_credentials", "client_secret=pass-word-1", "scope=read"];
    if !wanted.iter().all(|pair| form.split('&').any(|given| given == *pair)) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let number = shop.logins.fetch_add(1, Ordering::SeqCst) + 1;
    Json(json!({"access_token": format!("token-{number}"), "expires_in": 3600})).into_response()
}

async fn report(RawQuery(query): RawQuery) -> Response {
    match query.filter(|query| query.contains("startDateTime=")) {
        Some(query) => Json(json!({"query": query})).into_response(),
        None => (StatusCode::BAD_REQUEST, "startDateTime is required").into_response(),
    }
}

async fn busy(State(shop): State<Shared>) -> Response {
    match shop.busy.fetch_add(1, Ordering::SeqCst) {
        0 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")]).into_response(),
        _ => "free".into_response(),
    }
}

/// A body as a server packs it without being asked: Latin-1 within gzip, with a number beyond 64 bits.
async fn packed() -> Response {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(
        &mut gzip,
        b"{\"city\": \"Z\xfcrich\", \"id\": 123456789012345678901}",
    )
    .unwrap();
    let head =
        [("content-encoding", "gzip"), ("content-type", "application/json; charset=iso-8859-1")];
    (head, gzip.finish().unwrap()).into_response()
}

/// Serves the shop and writes its description, and its address beside it; returns the description's path.
pub async fn serve_shop(home: &std::path::Path) -> String {
    let (address, _) = serve().await;
    let spec = home.join("shop.json");
    std::fs::write(&spec, description(&address).to_string()).unwrap();
    std::fs::write(home.join("address"), &address).unwrap();
    spec.to_str().unwrap().to_owned()
}

fn description(address: &str) -> Value {
    let query = |name: &str| json!([{"name": name, "in": "query", "schema": {"type": "string"}}]);
    json!({"openapi": "3.0.0", "info": {"title": "Shop"}, "servers": [{"url": format!("{address}/v1")}], "paths": {
        "/orders/{orderId}": {
            "get": {"operationId": "getOrder", "summary": "One order", "security": [], "parameters": [
                {"name": "expand", "in": "query", "style": "form", "explode": false, "schema": {"type": "array"}},
                {"name": "X-Trace", "in": "header", "schema": {"type": "string"}}]},
            "delete": {"operationId": "cancelOrder", "summary": "Cancels an order"}},
        "/orders": {"get": {"operationId": "listOrders", "summary": "All orders", "parameters": query("page")}},
        "/private": {"get": {"operationId": "private"}},
        "/report": {"get": {"operationId": "report", "parameters": query("startDateTime")}},
        "/busy": {"get": {"operationId": "busy"}},
        "/packed": {"get": {"operationId": "packed"}},
        "/moved": {"get": {"operationId": "moved"}},
        "/away": {"get": {"operationId": "away"}},
        "/split": {"get": {"operationId": "split"}},
        "/echo": {"get": {"operationId": "echo"}},
        "/search": {"post": {"operationId": "search", "requestBody": {
            "content": {"application/json": {"schema": {"type": "object"}}}}}},
    }})
}

pub(crate) struct Started {
    pub(crate) client: Client,
    pub(crate) shop: Shared,
    address: String,
    _home: tempfile::TempDir,
}

pub(crate) async fn started(extra: &[&str], auth: &str, environment: &[(&str, &str)]) -> Started {
    let (address, shop) = serve().await;
    let home = tempfile::tempdir().unwrap();
    let spec = home.path().join("shop.json");
    std::fs::write(&spec, description(&address).to_string()).unwrap();
    let auth_file = home.path().join("auth.toml");
    std::fs::write(&auth_file, auth.replace("ADDRESS", &address)).unwrap();
    let mut arguments = vec!["api", "--spec", spec.to_str().unwrap()];
    if !auth.is_empty() {
        arguments.extend(["--auth", auth_file.to_str().unwrap()]);
    }
    arguments.extend(extra);
    let client = start(&arguments, environment).await;
    Started { client, shop, address, _home: home }
}

/// S2.06: an operation is found, described and called, with every value where it belongs.
#[tokio::test]
async fn an_operation_is_found_described_and_called() {
    let shop = started(&[], "", &[]).await;
    let found = shop.client.data("find_operations", json!({"query": "show me one order"})).await;
    assert_eq!(found["operations"][0]["operation"], "getOrder");
    assert!(
        found["operations"]
            .as_array()
            .unwrap()
            .iter()
            .any(|found| found["operation"] == "listOrders")
    );
    let described =
        shop.client.data("describe_operation", json!({"operation": "GET /orders/{orderId}"})).await;
    assert_eq!(described["description"]["parameters"]["query"][0]["name"], "expand");
    let call = json!({"operation": "getOrder", "path_params": {"orderId": "a/b"}, "query_params": [{"name": "expand", "value": ["x", "y"]}],
                      "headers": {"X-Trace": "t"}});
    let data = shop.client.data("call_operation", call).await;
    assert_eq!(data["status"], 200);
    assert_eq!(data["headers"]["content-type"], "application/json");
    assert_eq!(
        data["body"],
        json!({"id": "a/b", "trace": "t", "query": "expand=x,y", "authorization": false})
    );
    shop.client.stop().await;
}

/// S2.06: what is missing or unknown is named, and nothing is sent.
#[tokio::test]
async fn missing_parameters_of_a_call_are_named_before_it_is_sent() {
    let shop = started(&[], "", &[]).await;
    let missing = shop.client.failure("call_operation", json!({"operation": "getOrder"})).await;
    assert_eq!(missing, "RequestError: getOrder needs values for: orderId (path)");
    let outside = shop
        .client
        .failure(
            "call_operation",
            json!({"operation": "getOrder", "path_params": {"orderId": ".."}}),
        )
        .await;
    assert!(outside.starts_with("PathResolutionError"), "{outside}");
    let unknown = shop.client.failure("call_operation", json!({"operation": "getOrdr"})).await;
    assert!(unknown.contains("did you mean getOrder?"), "{unknown}");
    let writing = json!({"operation": "cancelOrder", "path_params": {"orderId": "7"}});
    let refused = shop.client.failure("read_operation", writing).await;
    assert!(refused.contains("only reading is allowed here"), "{refused}");
    let forbidden = json!({"operation": "busy", "headers": {"Authorization": "x"}});
    assert!(shop.client.failure("call_operation", forbidden).await.contains("Authorization"));
    shop.client.stop().await;
}

/// S2.06: a token is fetched by the configured login, used again, and renewed once however many requests were refused.
#[tokio::test]
async fn a_refused_token_is_renewed_once_for_any_number_of_requests() {
    let auth = "[login]\nurl = \"ADDRESS/login\"\nbody = { email = \"a@b.test\", password = \"${SHOP_PASSWORD}\" }\n\
                token = \"/idToken\"\nexpires_in = \"/expiresIn\"\n";
    let shop = started(&[], auth, &[("SHOP_PASSWORD", "pass-word-1")]).await;
    shop.shop.good.store(1, Ordering::SeqCst);
    let call = || shop.client.data("call_operation", json!({"operation": "private"}));
    assert_eq!(call().await["body"], json!({"secret": true}));
    assert_eq!(call().await["status"], 200);
    assert_eq!(shop.shop.logins.load(Ordering::SeqCst), 1);
    shop.shop.good.store(2, Ordering::SeqCst);
    let all = futures::future::join_all((0..8).map(|_| call())).await;
    assert!(all.iter().all(|data| data["status"] == 200));
    assert_eq!(shop.shop.logins.load(Ordering::SeqCst), 2);
    shop.client.stop().await;
}

/// S2.06: a direct token counts first, and one that is refused is an answer, not a loop.
#[tokio::test]
async fn a_direct_token_that_is_refused_is_answered_with_401() {
    let shop = started(&[], "", &[("PERIHELION_API_TOKEN", "token-9")]).await;
    let result = shop.client.call("call_operation", json!({"operation": "private"})).await;
    assert_eq!(result.is_error, Some(true));
    assert_eq!(shop.client.checked("call_operation", result).await["status"], 401);
    shop.shop.good.store(9, Ordering::SeqCst);
    assert_eq!(
        shop.client.data("call_operation", json!({"operation": "private"})).await["status"],
        200
    );
    shop.client.stop().await;
}

/// S2.06: pages are followed within the bound, waits are kept, redirects stay within the base.
#[tokio::test]
async fn pages_waits_and_redirects_are_followed_within_limits() {
    let shop = started(&["--max-pages", "3"], "", &[]).await;
    let data = shop.client.data("call_operation", json!({"operation": "listOrders"})).await;
    assert_eq!(data["body"], json!([{"page": 1}, {"page": 2}, {"page": 3}]));
    assert_eq!((&data["pages"], &data["truncated"]), (&json!(3), &json!(true)));
    assert_eq!(
        shop.client.data("call_operation", json!({"operation": "busy"})).await["body"],
        "free"
    );
    assert_eq!(
        shop.client.data("call_operation", json!({"operation": "moved"})).await["body"]["id"],
        "7"
    );
    let away = shop.client.data("call_operation", json!({"operation": "away"})).await;
    assert_eq!((&away["status"], &away["headers"]["location"]), (&json!(302), &json!("/admin")));
    shop.client.stop().await;
}

/// S2.06: a refusal for missing parameters is repaired once from the context; a context may not send credentials elsewhere.
#[tokio::test]
async fn the_context_repairs_a_refused_request_and_sets_the_base_address_only_if_allowed() {
    let shop = started(&[], "", &[("PERIHELION_API_TOKEN", "secret-token")]).await;
    let with = |context: Value| Map::from_iter([("dev.perihelion/context".to_owned(), context)]);
    let context = with(json!({"current_date_start_hour": "2024-05-01 00"}));
    let result =
        shop.client.call_with("call_operation", json!({"operation": "report"}), context).await;
    let data = shop.client.checked("call_operation", result).await;
    assert_eq!((&data["status"], &data["adjusted"]), (&json!(200), &json!(["startDateTime"])));
    assert_eq!(data["body"]["query"], "startDateTime=2024-05-01%2000");
    let context = with(json!({"api_base_url": "https://elsewhere.test"}));
    let result =
        shop.client.call_with("call_operation", json!({"operation": "report"}), context).await;
    let words = crate::client::text(&result);
    assert!(words.contains("--allow-base") && !words.contains("secret-token"), "{words}");
    let context = with(json!({"api_base_url": shop.address}));
    let result =
        shop.client.call_with("call_operation", json!({"operation": "report"}), context).await;
    assert_eq!(shop.client.checked("call_operation", result).await["body"], "/report");
    // A model can write the argument, so even this machine is foreign there.
    let call = json!({"operation": "report", "context": {"api_base_url": shop.address}});
    let refused = shop.client.failure("call_operation", call).await;
    assert!(refused.contains("--allow-base"), "{refused}");
    shop.client.stop().await;
}

/// S2.06: the operator's headers reach only the operator's addresses.
#[tokio::test]
async fn a_context_cannot_send_the_operators_headers_elsewhere() {
    let shop = started(&["--header", "X-Api-Key=secret-key"], "", &[]).await;
    let context = json!({"api_base_url": "https://elsewhere.test"});
    let context = Map::from_iter([("dev.perihelion/context".to_owned(), context)]);
    let result =
        shop.client.call_with("call_operation", json!({"operation": "report"}), context).await;
    let words = crate::client::text(&result);
    assert!(words.contains("--allow-base"), "{words}");
    shop.client.stop().await;
}

/// S2.06: a page that cannot be joined is not counted, and the answer is incomplete.
#[tokio::test]
async fn an_answer_with_two_lists_does_not_claim_to_be_complete() {
    let shop = started(&[], "", &[]).await;
    let data = shop.client.data("read_operation", json!({"operation": "split"})).await;
    assert_eq!((&data["pages"], &data["truncated"]), (&json!(1), &json!(true)));
    assert_eq!(data["body"]["items"], json!([1]));
    shop.client.stop().await;
}

/// S2.06: an answer is unpacked and decoded, and its numbers keep their digits.
#[tokio::test]
async fn a_packed_answer_in_another_character_set_is_read_digit_by_digit() {
    let shop = started(&[], "", &[]).await;
    let data = shop.client.data("read_operation", json!({"operation": "packed"})).await;
    assert_eq!(data["body"], json!({"city": "Zürich", "id": "123456789012345678901"}));
    shop.client.stop().await;
}

/// S2.06: what only reads never asks a server to take the request for another one.
#[tokio::test]
async fn a_read_contains_no_part_that_would_make_it_a_write() {
    let shop = started(&["--read-only", "--reads", "search"], "", &[]).await;
    for name in ["X-HTTP-Method-Override", "x_http_method", "X-Forwarded-For", "X-Original-URL"] {
        let call = json!({"operation": "busy", "headers": {name: "DELETE"}});
        let refused = shop.client.failure("read_operation", call).await;
        assert!(refused.contains(name), "{refused}");
    }
    let call = json!({"operation": "search", "body": {"_method": "PUT"}});
    let refused = shop.client.failure("read_operation", call).await;
    assert!(refused.contains("leave out: _method"), "{refused}");
    shop.client.stop().await;
}

/// S2.06: a server that only reads refuses what may change something.
#[tokio::test]
async fn a_read_only_server_refuses_writes_by_name() {
    let shop = started(&["--read-only"], "", &[]).await;
    let call = json!({"operation": "cancelOrder", "path_params": {"orderId": "7"}});
    let refused = shop.client.failure("call_operation", call).await;
    assert!(refused.contains("DELETE") && refused.contains("cancelOrder"), "{refused}");
    shop.client.stop().await;
    // What the operator says only reads, does.
    let shop = started(&["--read-only", "--reads", "cancelOrder"], "", &[]).await;
    let call = json!({"operation": "cancelOrder", "path_params": {"orderId": "7"}});
    assert_eq!(shop.client.data("read_operation", call).await["status"], 204);
    shop.client.stop().await;
}
