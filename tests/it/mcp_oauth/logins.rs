//! People's logins, by the binary.

use std::os::unix::fs::PermissionsExt as _;

use perihelion::llm::scripted::Script;

use super::{CANARY, Site, Waiting, greeting, kept, log_in, servers, world};
use crate::cli::world::{World, answering};

/// Asserts that nothing that the site gave out stands in a text.
fn assert_clean(text: &str) {
    let shown = text.replace("canary-oauth-client-", "");
    assert!(!shown.contains(CANARY), "{text}");
}

/// X6
#[tokio::test]
async fn a_person_logs_in_and_runs_use_the_login_which_shows_nowhere() {
    let site = Site::start().await;
    let world = world(&site, greeting()).await;
    let before = world.run(&["agents"]).await.code(0);
    before.says("it wants a login: perihelion agents login tracker");

    let waiting =
        Waiting::begin(&world, &["--log", "trace,rmcp=trace,rmcp::transport::auth=trace"]);
    let waiting = waiting.await;
    let (status, page) = waiting.visit().await;
    assert_eq!(status, 200, "{page}");
    let login = waiting.end().await.code(0);
    assert_eq!(
        login.stdout.trim(),
        format!("logged in to tracker at {}; scopes: greet; tools: 2", site.issuer)
    );
    assert_clean(&login.stderr);
    {
        let life = site.life();
        let asked = &life.authorizations[0];
        let method = &asked["code_challenge_method"];
        let scope = &asked["scope"];
        assert_eq!((&**method, &**scope), ("S256", "greet"));
        assert_eq!(asked["resource"], site.url);
        assert_eq!(life.registrations[0]["application_type"], "native");
    }
    let files = kept(&world);
    assert_eq!(files.len(), 1);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(files[0].parent().unwrap())), (0o600, 0o700));

    // The server says its token back to the one who calls; of the messages themselves nobody asked for a record.
    let traced = ["--log", "trace"];
    let run = world.run(&[&["run", "greet", "--thread", "t"][..], &traced].concat()).await.code(0);
    assert_eq!(run.stdout.trim(), "It was greeted [1].");
    assert!(site.life().seen.iter().any(|seen| seen.is_some()));
    let state = world.run(&["threads", "state", "t"]).await.code(0);
    assert!(state.stdout.contains("greeted"), "{state:?}");
    let dump = world.run(&["threads", "export", "t"]).await.code(0);
    assert!(dump.stdout.contains("greet as Some(Ok(\\\"Bearer [redacted]"), "the tool's own words");
    let trace = world.run(&["trace", "t", "--json"]).await.code(0);
    for output in [&run.stdout, &run.stderr, &state.stdout, &dump.stdout, &trace.stdout] {
        assert_clean(output);
    }
    let database = std::fs::read(world.path("data/perihelion/perihelion.db")).unwrap();
    assert_clean(&String::from_utf8_lossy(&database));
}

/// X6
#[tokio::test]
async fn a_logout_revokes_and_forgets() {
    let site = Site::start().await;
    let world = world(&site, answering()).await;
    log_in(&world).await;
    let listed = world.run(&["agents"]).await.code(0);
    assert!(listed.stdout.contains("mcp_agent_tracker"), "{listed:?}");
    let done = world.run(&["agents", "logout", "mcp_agent_tracker"]).await.code(0);
    assert_eq!(done.stdout.trim(), "logged out of tracker: its tokens were revoked");
    assert!(site.life().revoked[0].starts_with("canary-oauth-refresh-"));
    assert_eq!(kept(&world), Vec::<std::path::PathBuf>::new());
    let listed = world.run(&["agents"]).await.code(0);
    listed.says("it wants a login: perihelion agents login tracker");
    let again = world.run(&["agents", "logout", "tracker"]).await.code(0);
    assert_eq!(again.stdout.trim(), "tracker: not logged in");
}

/// X6
#[tokio::test]
async fn an_expired_login_costs_a_run_only_that_agent() {
    let site = Site::start().await;
    let world = world(&site, greeting()).await;
    log_in(&world).await;
    site.life().revoke_all();
    let run = world.run(&["run", "greet", "--thread", "t", "--json"]).await.code(0);
    assert_eq!(run.json()["status"], "done");
    let prompt = world.model.requests();
    let prompt = prompt.iter().map(|one| format!("{:?}", one.body)).collect::<String>();
    assert!(prompt.contains("log in again: perihelion agents login tracker"), "{prompt}");
    let listed = world.run(&["agents"]).await.code(0);
    assert!(listed.stdout.contains("needs login"), "{listed:?}");
    let shown = world.run(&["agents", "show", "tracker"]).await.code(0).stdout;
    assert!(shown.contains("log in again: perihelion agents login tracker"), "{shown}");
    // Somebody does.
    let waiting = Waiting::begin(&world, &["--json", "--no-open"]).await;
    assert_eq!(waiting.visit().await.0, 200);
    let made = waiting.end().await.code(0).json();
    assert_eq!((&made["tools"], &made["renewable"]), (&2.into(), &true.into()), "{made}");
    let listed = world.run(&["agents", "--refresh"]).await.code(0);
    assert!(listed.stdout.contains("running"), "{listed:?}");
}

/// What is refused leaves no login behind.
async fn refused(world: &World, waiting: Option<Waiting>, words: &str) {
    let ended = match waiting {
        Some(waiting) => waiting.end().await,
        None => world.run(&["agents", "login", "tracker"]).await,
    };
    ended.code(1).says(words);
    assert_eq!(kept(world), Vec::<std::path::PathBuf>::new());
}

/// X6
#[tokio::test]
async fn answers_from_another_issuer_or_for_another_login_are_refused() {
    let site = Site::start().await;
    let world = world(&site, Script::new()).await;
    // A page that guesses the port has no `state`.
    let waiting = Waiting::begin(&world, &[]).await;
    let address = reqwest::Url::parse(&waiting.address).unwrap();
    let back = address.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1;
    let (status, _) = super::visit(&format!("{back}?code=stolen&state=guessed")).await;
    assert_eq!(status, 400);
    assert_eq!(site.life().grants.len(), 0);
    // It still waits for the right one.
    assert_eq!(waiting.visit().await.0, 200);
    waiting.end().await.code(0);
    world.run(&["agents", "logout", "tracker"]).await.code(0);

    site.life().false_issuer = Some("https://elsewhere.example".to_owned());
    let waiting = Waiting::begin(&world, &[]).await;
    waiting.visit().await;
    refused(&world, Some(waiting), "issuer mismatch").await;
    assert_eq!(site.life().grants.len(), 1, "the code was not sent anywhere");

    site.life().false_issuer = None;
    site.life().denies = true;
    let waiting = Waiting::begin(&world, &[]).await;
    waiting.visit().await;
    refused(&world, Some(waiting), "the login was refused: access_denied").await;

    let waiting = Waiting::begin(&world, &["--timeout-sec", "1"]).await;
    refused(&world, Some(waiting), "no login arrived within 1 s").await;
}

/// X6
#[tokio::test]
async fn a_server_that_says_that_it_is_another_gets_no_login() {
    let site = Site::start().await;
    let world = world(&site, Script::new()).await;
    site.life().false_resource = Some("https://elsewhere.example/mcp".to_owned());
    refused(&world, None, "resource mismatch").await;
    assert_eq!(site.life().registrations.len(), 0);
}

/// X6
#[tokio::test]
async fn a_login_is_for_the_address_that_it_was_made_for() {
    let site = Site::start().await;
    let other = Site::start().await;
    let world = world(&site, greeting()).await;
    log_in(&world).await;
    world.write("mcp-servers.toml", &servers(&other.url, ""));
    // Another address is another server, which is not even reached until somebody looks at it.
    world.run(&["agents", "--refresh"]).await.code(0).says("quarantine");
    assert!(other.life().seen.is_empty());
    let looked = world.run(&["agents", "approve", "tracker"]).await.code(1);
    looked.says("it wants a login: perihelion agents login tracker");
    let seen = other.life().seen.clone();
    assert!(!seen.is_empty() && seen.iter().all(Option::is_none), "{seen:?}");
}

#[tokio::test]
async fn a_login_that_is_impossible_gives_the_reason() {
    let site = Site::start().await;
    let mut world = world(&site, Script::new()).await;
    world.set("TOKEN", "canary-oauth-given");
    let given = "bearer_token_env_var = \"TOKEN\"\nscopes = [\"greet\"]\n";
    world.write("mcp-servers.toml", &servers(&site.url, given));
    let ended = world.run(&["agents", "login", "tracker"]).await.code(1);
    ended.says("only if no token is given with bearer_token_env_var");
    let listed = world.run(&["agents"]).await.code(0);
    listed.says("a token is given already, so this key has no effect: mcp_servers.tracker.scopes");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    world.write(
        "mcp-servers.toml",
        &servers(&site.url, &format!("oauth = {{ callback_port = {port} }}\n")),
    );
    let ended = world.run(&["agents", "login", "tracker"]).await.code(1);
    ended.says(&format!("cannot listen on 127.0.0.1:{port} for the browser to come back"));
    let far = "[mcp_servers.tracker]\nurl = \"http://tracker.example/mcp\"\n";
    world.write("mcp-servers.toml", far);
    let ended = world.run(&["agents", "login", "tracker"]).await.code(1);
    ended.says("must be reached over https, or be on this machine: http://tracker.example/mcp");
    world.run(&["agents", "login", "nobody"]).await.code(2).says("unknown or disabled MCP server");
}
