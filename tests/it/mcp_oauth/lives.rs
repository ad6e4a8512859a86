//! The life of a token: renewed in time, once, by the one who needs it; wider where more is wanted; got without people.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use perihelion::mcp::{Error, Phase, ToolHost as _};

use super::site::Gate;
use super::{CLIENT_SECRET, Site, call, finish, log_in, pool, world};
use crate::cli::world::answering;

/// X6
#[tokio::test]
async fn processes_that_find_an_expired_token_together_renew_it_once_and_store_the_rotated_one() {
    let site = Site::start().await;
    let world = world(&site, answering()).await;
    site.life().next_life = Some(0);
    // The look at the tools after the login already needs a newer one.
    log_in(&world).await;
    assert_eq!(site.life().given("refresh_token"), 1);
    for round in 2..4 {
        {
            let mut life = site.life();
            life.next_life = None;
            life.tokens.clear();
        }
        let lists = (0..4).map(|_| world.run(&["agents", "--refresh"]));
        for ended in join_all(lists).await {
            let ended = ended.code(0);
            assert!(ended.stdout.contains("mcp_agent_tracker"), "{ended:?}");
        }
        let life = site.life();
        assert_eq!((life.given("refresh_token"), life.reused), (round, 0));
    }
}

/// X6
#[tokio::test]
async fn a_token_is_renewed_before_it_runs_out_and_once_when_it_is_refused() {
    let site = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let pool = pool(&site.url, "", logins.path());
    let error = pool.scan().await.remove(0).outcome.unwrap_err().to_string();
    assert!(error.ends_with("it wants a login: perihelion agents login tracker"), "{error}");
    assert_eq!(pool.states()[0].phase, Phase::NeedsLogin);
    let made = finish(pool.log_in("tracker").await.unwrap()).await.unwrap();
    assert_eq!((made.issuer.as_deref(), made.is_renewable), (Some(&*site.issuer), true));
    assert_eq!(
        call(&pool, "greet").await.unwrap().text,
        "greet as Some(Ok(\"Bearer [redacted]\"))"
    );
    assert_eq!(site.life().given("refresh_token"), 0);

    // Refused, though by its own word it has an hour left.
    site.life().tokens.clear();
    call(&pool, "greet").await.unwrap();
    assert_eq!(site.life().given("refresh_token"), 1);

    // The authorization server is away, and the token is refused: the call was not made, and the login stays.
    {
        let mut life = site.life();
        life.tokens.clear();
        life.is_down = true;
    }
    let error = call(&pool, "greet").await.unwrap_err();
    assert!(matches!(error, Error::NotSent { .. }), "{error}");
    assert!(error.to_string().contains("no token could be got"), "{error}");
    site.life().is_down = false;
    call(&pool, "greet").await.unwrap();
    assert_eq!(pool.failure("tracker"), None);

    // It runs out for good.
    {
        let mut life = site.life();
        life.tokens.clear();
        life.bars_refreshes = true;
    }
    let error = call(&pool, "greet").await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("perihelion agents login tracker"), "{error}");
    assert!(pool.failure("tracker").unwrap().contains("log in again"));
    let asked = site.life().grants.len();
    call(&pool, "greet").await.unwrap_err();
    assert_eq!(site.life().grants.len(), asked, "nobody asks in vain");
    pool.close().await;
}

/// X6
#[tokio::test]
async fn a_call_beyond_the_scopes_of_the_login_reports_it_and_the_next_login_requests_all_scopes() {
    let site = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let pool = pool(&site.url, "", logins.path());
    finish(pool.log_in("tracker").await.unwrap()).await.unwrap();
    let error = call(&pool, "write").await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    let wanted = "it wants the scopes: write); log in again: perihelion agents login tracker";
    assert!(error.to_string().contains(wanted), "{error}");
    let in_menu = "its login does not allow this; log in again: perihelion agents login tracker";
    assert_eq!(pool.failure("tracker").as_deref(), Some(in_menu), "no word of the server");
    // What it allows still works.
    call(&pool, "greet").await.unwrap();
    assert_eq!(pool.failure("tracker"), None);
    let made = finish(pool.log_in("tracker").await.unwrap()).await.unwrap();
    assert_eq!(made.scopes, ["greet", "write"]);
    call(&pool, "write").await.unwrap();
    pool.close().await;
}

/// X6
#[tokio::test]
async fn client_credentials_get_and_renew_tokens_unattended() {
    let site = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let oauth = "oauth = { client_id = \"machine\", client_secret_env_var = \"SECRET\", \
                 grant = \"client_credentials\" }\nscopes = [\"write\"]\n";
    let pool = pool(&site.url, oauth, logins.path());
    let words = call(&pool, "write").await.unwrap().text;
    assert_eq!(words, "write as Some(Ok(\"Bearer [redacted]\"))");
    site.life().tokens.clear();
    call(&pool, "write").await.unwrap();
    assert_eq!(site.life().given("client_credentials"), 2);
    let error = pool.log_in("tracker").await.err().unwrap().to_string();
    assert!(error.contains("client credentials"), "{error}");
    pool.close().await;
    // Another process finds the token there; the secret stands nowhere.
    let other = super::pool(&site.url, oauth, logins.path());
    call(&other, "write").await.unwrap();
    other.close().await;
    assert_eq!(site.life().given("client_credentials"), 2);
    for file in std::fs::read_dir(logins.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(CLIENT_SECRET), "{text}");
    }
}

#[tokio::test]
async fn the_secret_of_the_operator_goes_to_no_other_authorization_server() {
    let site = Site::start().await;
    let other = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let machine = |more: &str| {
        format!(
            "oauth = {{ client_id = \"machine\", client_secret_env_var = \"SECRET\", grant = \
             \"client_credentials\"{more} }}\n"
        )
    };
    let pool = pool(&site.url, &machine(""), logins.path());
    call(&pool, "greet").await.unwrap();
    {
        let mut life = site.life();
        life.tokens.clear();
        life.moved_to = Some(other.issuer.clone());
    }
    let error = call(&pool, "greet").await.unwrap_err().to_string();
    assert!(error.contains("in place of"), "{error}");
    assert_eq!((site.life().given("client_credentials"), other.life().asked), (1, 0));
    pool.close().await;
    // What the operator says counts from the first request on.
    site.life().moved_to = None;
    let elsewhere = tempfile::tempdir().unwrap();
    let issuer = format!(", issuer = \"{}\"", other.issuer);
    let pool = super::pool(&site.url, &machine(&issuer), elsewhere.path());
    let error = call(&pool, "greet").await.unwrap_err().to_string();
    assert!(error.contains("in place of"), "{error}");
    assert_eq!((site.life().given("client_credentials"), other.life().asked), (1, 0));
    pool.close().await;
}

#[tokio::test]
async fn a_refusal_without_a_challenge_counts_as_a_refusal() {
    let site = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let pool = pool(&site.url, "", logins.path());
    finish(pool.log_in("tracker").await.unwrap()).await.unwrap();
    call(&pool, "greet").await.unwrap();
    site.life().is_curt = true;
    site.life().tokens.clear();
    call(&pool, "greet").await.unwrap();
    assert_eq!(site.life().given("refresh_token"), 1);
    site.life().revoke_all();
    call(&pool, "greet").await.unwrap_err();
    assert_eq!(pool.states()[0].phase, Phase::NeedsLogin);
    pool.close().await;
}

#[tokio::test]
async fn an_unfinished_login_leaves_the_earlier_one() {
    let site = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let pool = pool(&site.url, "", logins.path());
    finish(pool.log_in("tracker").await.unwrap()).await.unwrap();
    let login = pool.log_in("tracker").await.unwrap();
    let error = login.finish(Duration::ZERO).await.unwrap_err().to_string();
    assert_eq!(error, "no login to the MCP server tracker: no login arrived within 0 s");
    call(&pool, "greet").await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn a_login_in_another_process_takes_effect_at_once() {
    let site = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let here = pool(&site.url, "", logins.path());
    let elsewhere = pool(&site.url, "", logins.path());
    finish(elsewhere.log_in("tracker").await.unwrap()).await.unwrap();
    call(&here, "greet").await.unwrap();
    site.life().revoke_all();
    call(&here, "greet").await.unwrap_err();
    assert_eq!(here.states()[0].phase, Phase::NeedsLogin);
    finish(elsewhere.log_in("tracker").await.unwrap()).await.unwrap();
    assert_eq!(here.failure("tracker"), None);
    call(&here, "greet").await.unwrap();
    elsewhere.log_out("tracker").await.unwrap();
    call(&here, "greet").await.unwrap_err();
    here.close().await;
    elsewhere.close().await;
}

#[tokio::test]
async fn a_token_rotated_for_an_abandoned_call_is_stored() {
    let site = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let pool = pool(&site.url, "", logins.path());
    finish(pool.log_in("tracker").await.unwrap()).await.unwrap();
    call(&pool, "greet").await.unwrap();
    let gate = Arc::new(Gate::default());
    {
        let mut life = site.life();
        life.tokens.clear();
        life.gate = Some(gate.clone());
    }
    tokio::select! {
        ended = call(&pool, "greet") => panic!("it should wait for its token: {ended:?}"),
        () = gate.reached.notified() => {}
    }
    // The end waits for what the authorization server has yet to say.
    futures::future::join(pool.close(), async { gate.open.notify_one() }).await;
    assert_eq!(site.life().given("refresh_token"), 1);
    let other = super::pool(&site.url, "", logins.path());
    call(&other, "greet").await.unwrap();
    other.close().await;
    let life = site.life();
    assert_eq!((life.given("refresh_token"), life.reused), (1, 0));
}

#[tokio::test]
async fn a_refresh_token_is_not_shown_to_another_authorization_server() {
    let site = Site::start().await;
    let other = Site::start().await;
    let logins = tempfile::tempdir().unwrap();
    let pool = pool(&site.url, "", logins.path());
    finish(pool.log_in("tracker").await.unwrap()).await.unwrap();
    {
        let mut life = site.life();
        life.tokens.clear();
        life.moved_to = Some(other.issuer.clone());
    }
    let error = call(&pool, "greet").await.unwrap_err().to_string();
    assert!(error.contains("log in again: perihelion agents login tracker"), "{error}");
    assert_eq!((site.life().given("refresh_token"), other.life().asked), (0, 0));
    // Nor does the next login go there, until the operator wants it.
    let error = pool.log_in("tracker").await.err().unwrap().to_string();
    assert!(error.contains("in place of") && error.contains("agents logout"), "{error}");
    assert_eq!(other.life().asked, 0);
    pool.log_out("tracker").await.unwrap();
    // That one knows no such server, but it is asked now.
    finish(pool.log_in("tracker").await.unwrap()).await.unwrap_err();
    assert_eq!(other.life().asked, 1);
    pool.close().await;
}
