//! Single sign-on at an OpenID provider, and what attacks on it lead to (S3.04).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::extract::Form;
use axum::http::StatusCode;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde_json::{Value, json};

use super::issuer::{Issuer, header, signed};
use super::on_both;
use super::people::{ask, cookies};
use super::served::Served;

on_both!(a_user_of_a_provider_has_the_scopes_of_their_roles_and_no_other_user_s_account);

const SECRET: &str = "s3cr3t/with:marks";
const HOME: &str = "https://agents.example.org";

/// What a token endpoint was sent: the form, and the header of the client's credentials.
type Sent = Arc<Mutex<Vec<(HashMap<String, String>, String)>>>;

/// A provider whose ID tokens a test writes; each code counts once.
struct Provider {
    url: String,
    issuer: Issuer,
    /// The ID token of each code.
    tokens: Arc<Mutex<HashMap<String, String>>>,
    sent: Sent,
}

impl Provider {
    async fn start() -> Self {
        let issuer = Issuer::start().await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let tokens: Arc<Mutex<HashMap<String, String>>> = Arc::default();
        let sent: Sent = Arc::default();
        let configuration = json!({
            "issuer": url, "authorization_endpoint": format!("{url}/auth?tenant=1"),
            "token_endpoint": format!("{url}/token"), "jwks_uri": issuer.jwks_url,
            "end_session_endpoint": format!("{url}/end"),
        });
        let found = move || std::future::ready(Json(configuration));
        let codes = Arc::clone(&tokens);
        let requests = Arc::clone(&sent);
        let exchange =
            async move |headers: axum::http::HeaderMap,
                        Form(form): Form<HashMap<String, String>>| {
                let token = codes.lock().unwrap().remove(&form["code"]);
                let credentials =
                    headers.get("authorization").map(|it| it.to_str().unwrap().to_owned());
                requests.lock().unwrap().push((form, credentials.unwrap_or_default()));
                match token {
                    Some(token) => {
                        (StatusCode::OK, Json(json!({ "id_token": token, "access_token": "a" })))
                    }
                    None => (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))),
                }
            };
        let routes = axum::Router::new()
            .route("/.well-known/openid-configuration", get(found))
            .route("/token", post(exchange));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, issuer, tokens, sent }
    }

    fn settings(&self) -> String {
        json!({
            "issuer": self.url, "client_id": "us", "client_secret": SECRET, "public_url": HOME,
            "name": "Acme", "roles_claim": "groups", "roles": { "ops": ["read", "manage"] },
        })
        .to_string()
    }

    fn claims(&self, login: &Login, more: Value) -> Value {
        let until = perihelion::clock::now().timestamp() + 60;
        let mut claims = json!({
            "iss": self.url, "aud": "us", "sub": "1", "email": "ann@example.org", "exp": until, "nonce": login.nonce,
        });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    }

    /// Lets a code stand for an ID token.
    fn give(&self, code: &str, token: &str) {
        let token = token.trim_start_matches("Bearer ").to_owned();
        self.tokens.lock().unwrap().insert(code.to_owned(), token);
    }

    fn asked(&self) -> usize {
        self.sent.lock().unwrap().len()
    }
}

/// A login that a browser has begun.
struct Login {
    cookie: String,
    state: String,
    nonce: String,
    challenge: String,
    address: Url,
}

fn browser() -> reqwest::Client {
    let client = reqwest::Client::builder().no_proxy();
    client.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

async fn begin(served: &Served, next: &str) -> Login {
    let mut address = Url::parse(&format!("{}/v1/auth/oidc/login", served.url)).unwrap();
    address.query_pairs_mut().append_pair("next", next);
    let answer = browser().get(address).send().await.unwrap();
    assert_eq!(answer.status(), 303);
    let set = answer.headers().get_all("set-cookie").iter().map(|it| it.to_str().unwrap());
    for cookie in set {
        for attribute in ["; HttpOnly", "; SameSite=Lax", "; Secure"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
    }
    let cookie = cookies(&answer);
    let address = Url::parse(answer.headers()["location"].to_str().unwrap()).unwrap();
    let sent: HashMap<String, String> = address.query_pairs().into_owned().collect();
    let part = |name: &str| sent[name].clone();
    let challenge = part("code_challenge");
    Login { cookie, state: part("state"), nonce: part("nonce"), challenge, address }
}

/// Comes back from the provider, and returns where the browser is led and what it keeps.
async fn come_back(served: &Served, cookie: &str, query: &[(&str, &str)]) -> (String, String) {
    let mut address = Url::parse(&format!("{}/v1/auth/oidc/callback", served.url)).unwrap();
    address.query_pairs_mut().extend_pairs(query);
    let answer = browser().get(address).header("cookie", cookie).send().await.unwrap();
    assert_eq!(answer.status(), 303);
    assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
    (answer.headers()["location"].to_str().unwrap().to_owned(), cookies(&answer))
}

/// S3.04
async fn a_user_of_a_provider_has_the_scopes_of_their_roles_and_no_other_user_s_account(
    served: Served,
) {
    let provider = Provider::start().await;
    let settings = provider.settings();
    let more =
        [("PERIHELION_SERVE_OIDC", settings.as_str()), ("PERIHELION_SERVE_REGISTRATION", "true")];
    let served = served.again_with(&more).await;
    assert_eq!(served.get("/threads/x").await.0, 401, "everybody proves who they are");
    let checked = served.command(&["doctor"]).output().await.unwrap().stdout;
    let checked = String::from_utf8(checked).unwrap();
    assert!(checked.contains("✓ serve.oidc: the issuer publishes its keys"), "{checked}");
    let (_, ways) = served.get("/v1/auth/ways").await;
    assert_eq!(ways, json!({ "password": true, "registration": true, "single_sign_on": "Acme" }));

    let enter = async |claims: Value| {
        let login = begin(&served, "#/inbox").await;
        provider.give("c", &provider.issuer.token(&header(), &provider.claims(&login, claims)));
        let query = [("code", "c"), ("state", login.state.as_str()), ("iss", &provider.url)];
        let (at, cookie) = come_back(&served, &login.cookie, &query).await;
        (login, at, cookie)
    };
    let (login, at, cookie) = enter(json!({})).await;
    assert_eq!(at, format!("{HOME}/#/inbox"));
    assert!(login.address.as_str().starts_with(&format!("{}/auth?tenant=1&", provider.url)));
    let sent: HashMap<String, String> = login.address.query_pairs().into_owned().collect();
    assert_eq!((&*sent["response_type"], &*sent["code_challenge_method"]), ("code", "S256"));
    assert_eq!(sent["redirect_uri"], format!("{HOME}/v1/auth/oidc/callback"));
    let (form, credentials) = provider.sent.lock().unwrap()[0].clone();
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
    assert_eq!(challenge, login.challenge);
    assert!(!login.address.as_str().contains(&form["code_verifier"]));
    let basic = credentials.strip_prefix("Basic ").unwrap();
    let basic = base64::engine::general_purpose::STANDARD.decode(basic).unwrap();
    assert_eq!(String::from_utf8(basic).unwrap(), "us:s3cr3t%2Fwith%3Amarks");

    let me = async |cookie: &str| {
        let (code, me) = ask(&served, "GET", "/v1/auth/me", &[("cookie", cookie)], None).await;
        assert_eq!(code, 200, "{me}");
        (me["user"].clone(), me["scopes"].clone())
    };
    assert_eq!(me(&cookie).await, (json!("ann@example.org"), json!(["read", "run", "approve"])));
    // The next login has what the roles give by then, also to a session that is open.
    let (.., again) = enter(json!({ "groups": ["ops"], "email": "ann@other.example" })).await;
    let ops = (json!("ann@example.org"), json!(["read", "manage"]));
    assert_eq!((me(&again).await, me(&cookie).await), (ops.clone(), ops));

    // Nobody gets an account by its name: not another user of the provider, nor a user with a password.
    let (_, at, kept) = enter(json!({ "sub": "2" })).await;
    assert!(at.ends_with("login_problem=taken") && !kept.contains("perihelion_session=ph"), "{at}");
    let given = json!({ "name": "bob@example.org", "password": "correct horse" });
    assert_eq!(served.post("/v1/auth/register", &given).await.0, 200);
    let (_, at, _) = enter(json!({ "sub": "3", "email": "bob@example.org" })).await;
    assert!(at.ends_with("login_problem=taken"), "{at}");
    for password in ["", "correct horse"] {
        let given = json!({ "name": "ann@example.org", "password": password });
        assert_eq!(served.post("/v1/auth/login", &given).await.0, 401, "she has no password");
    }

    let csrf = cookie.split("perihelion_csrf=").nth(1).unwrap().split(';').next().unwrap();
    let who = [("cookie", cookie.as_str()), ("x-csrf-token", csrf)];
    let (code, out) = ask(&served, "POST", "/v1/auth/logout", &who, Some(json!({}))).await;
    assert_eq!((code, &out["logout_url"]), (200, &json!("v1/auth/oidc/logout")));
    assert_eq!(ask(&served, "GET", "/v1/auth/me", &who, None).await.0, 401);
    let out = format!("{}/v1/auth/oidc/logout", served.url);
    let out = browser().get(out).send().await.unwrap();
    let out = Url::parse(out.headers()["location"].to_str().unwrap()).unwrap();
    let sent: HashMap<String, String> = out.query_pairs().into_owned().collect();
    assert_eq!((out.path(), &*sent["post_logout_redirect_uri"]), ("/end", HOME));

    served.program(&["users", "disable", "ann@example.org"]).await;
    let (_, at, _) = enter(json!({})).await;
    assert!(at.ends_with("login_problem=forbidden"), "{at}");
}

/// S3.04: no answer but the provider's own to this very login begins a session.
#[tokio::test]
async fn forged_and_replayed_answers_of_a_provider_begin_no_session() {
    let provider = Provider::start().await;
    let served = Served::sqlite().await;
    let served = served.again_with(&[("PERIHELION_SERVE_OIDC", &provider.settings())]).await;
    let refused = |(at, kept): (String, String), problem: &str, what: &str| {
        assert_eq!(at, format!("{HOME}/#/chat?login_problem={problem}"), "{what}");
        assert!(!kept.contains("perihelion_session"), "{what}: {kept}");
    };

    let login = begin(&served, "#/chat").await;
    let other = begin(&served, "#/chat").await;
    provider.give("c", &provider.issuer.token(&header(), &provider.claims(&login, json!({}))));
    let own = [("code", "c"), ("state", login.state.as_str())];
    let foreign = [("iss", "https://other.example")];
    let declined = [("error", "access_denied"), ("state", login.state.as_str())];
    for (what, cookie, query, problem) in [
        ("another state", &login.cookie, vec![own[0], ("state", other.state.as_str())], "expired"),
        ("no state", &login.cookie, vec![own[0]], "expired"),
        ("no cookie", &String::new(), own.to_vec(), "expired"),
        ("an empty secret", &"perihelion_login=".to_owned(), own.to_vec(), "expired"),
        ("another browser", &other.cookie, own.to_vec(), "expired"),
        ("another issuer", &login.cookie, [own.as_slice(), &foreign].concat(), "provider"),
        ("declined", &login.cookie, declined.to_vec(), "denied"),
        (
            "declined with a code",
            &login.cookie,
            [own.as_slice(), &declined[..1]].concat(),
            "denied",
        ),
    ] {
        refused(come_back(&served, cookie, &query).await, problem, what);
    }
    assert_eq!(provider.asked(), 0, "no code was exchanged");
    let (at, _) = come_back(&served, &login.cookie, &own).await;
    assert_eq!(at, format!("{HOME}/#/chat"));
    refused(come_back(&served, &login.cookie, &own).await, "provider", "a replayed code");
    let (form, _) = provider.sent.lock().unwrap()[0].clone();
    let used = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
    assert_ne!(used, other.challenge, "each login has its own verifier");

    let stranger = Issuer::start().await;
    for (what, header, claims, problem) in [
        ("another nonce", header(), json!({ "nonce": other.nonce }), "forbidden"),
        ("no nonce", header(), json!({ "nonce": null }), "forbidden"),
        ("expired", header(), json!({ "exp": 1_700_000_000 }), "provider"),
        ("not yet valid", header(), json!({ "nbf": 4_000_000_000_u64 }), "provider"),
        ("another audience", header(), json!({ "aud": "them" }), "provider"),
        ("two audiences", header(), json!({ "aud": ["us", "them"] }), "forbidden"),
        ("another party", header(), json!({ "azp": "them" }), "forbidden"),
        ("another issuer", header(), json!({ "iss": "https://other.example" }), "provider"),
        ("no subject", header(), json!({ "sub": "" }), "forbidden"),
        ("an unverified address", header(), json!({ "email_verified": false }), "forbidden"),
        ("an unknown key", json!({ "alg": "ES256", "kid": "k2" }), json!({}), "provider"),
    ] {
        let login = begin(&served, "#/chat").await;
        provider.give("d", &provider.issuer.token(&header, &provider.claims(&login, claims)));
        let query = [("code", "d"), ("state", login.state.as_str())];
        refused(come_back(&served, &login.cookie, &query).await, problem, what);
    }
    let login = begin(&served, "#/chat").await;
    let claims = provider.claims(&login, json!({}));
    let by_secret = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    for (what, token) in [
        ("unsigned", signed(&json!({ "alg": "none" }), &claims, |_| Vec::new())),
        (
            "signed with the client's secret",
            signed(&json!({ "alg": "HS256", "kid": "k1" }), &claims, |text| {
                hmac::sign(&by_secret, text).as_ref().to_vec()
            }),
        ),
        ("signed by another issuer", stranger.token(&header(), &claims)),
        ("no token", "x".to_owned()),
    ] {
        provider.give("e", &token);
        let query = [("code", "e"), ("state", login.state.as_str())];
        refused(come_back(&served, &login.cookie, &query).await, "provider", what);
    }

    for elsewhere in
        ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:1", "#/a;b\r\nc"]
    {
        let login = begin(&served, elsewhere).await;
        provider.give("f", &provider.issuer.token(&header(), &provider.claims(&login, json!({}))));
        let query = [("code", "f"), ("state", login.state.as_str())];
        let (at, _) = come_back(&served, &login.cookie, &query).await;
        assert_eq!(at, format!("{HOME}/#/chat"), "{elsewhere}");
    }
}
