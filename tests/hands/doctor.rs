//! The doctor looks at each bundled server that needs more than to be started.

use perihelion::llm::scripted::Script;

use crate::agents::{Star, has_python};
use crate::api::serve_shop;
use crate::support::{dovecot, outgoing};

fn table(name: &str, arguments: &str) -> String {
    let program = env!("CARGO_BIN_EXE_perihelion");
    format!("[mcp_servers.{name}]\ncommand = {program:?}\nargs = [\"mcp\", {arguments}]\n")
}

async fn doctor(tables: &[String]) -> String {
    let star =
        Star::open("unused", &format!("enabled = false\n{}", tables.join("\n")), Script::new())
            .await;
    let output = star.perihelion(&["doctor"]).await;
    String::from_utf8(output.stdout).unwrap()
}

/// S2.11: what each server needs is tried: the sandbox, the description and the API's host, the search provider.
#[tokio::test]
async fn the_doctor_tries_the_sandbox_the_api_and_the_search() {
    let home = tempfile::tempdir().unwrap();
    let spec = serve_shop(home.path()).await;
    let text = std::fs::read_to_string(&spec).unwrap();
    let closed = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let words = doctor(&[
        table("maths", "\"python\""),
        table("shop", &format!("\"api\", \"--spec\", {spec:?}")),
        table(
            "gone",
            &format!("\"api\", \"--spec\", {spec:?}, \"--base-url\", \"http://{closed}\""),
        ),
        table("none", "\"api\", \"--spec\", \"/nowhere/openapi.json\""),
        table("surf", "\"web\""),
        table("paid", "\"web\", \"--search-wire\", \"brave\""),
        table("dead", &format!("\"web\", \"--search-url\", \"http://{closed}\"")),
    ])
    .await;
    let operations = text.matches("operationId").count();
    let python = if has_python() { "✓ server maths: " } else { "✗ server maths: " };
    for part in [
        python,
        "✓ server shop: ",
        "✓ server shop: http://127.0.0.1:",
        &format!("✗ server gone: HttpError: http://{closed} gives no answer"),
        "✗ server none: cannot read the API description /nowhere/openapi.json",
        "! server surf: ConfigurationError: no search provider is configured",
        "✗ server paid: ConfigurationError: the search provider wants a key; set PERIHELION_WEB_SEARCH_KEY",
        "✗ server dead: ",
    ] {
        assert!(words.contains(part), "{part} is not in ({operations} operations):\n{words}");
    }
}

/// S2.11: the mail account is logged in to on both sides, with the password of its table alone.
#[tokio::test]
async fn the_doctor_logs_in_to_both_mail_servers() {
    let Some(office) = dovecot("doctor") else { return };
    let outgoing = outgoing();
    let mail = |name: &str, imap: u16, password: &str| {
        let arguments = format!(
            "\"mail\", \"--imap\", \"127.0.0.1:{imap}\", \"--smtp\", \"127.0.0.1:{}\", \"--security\", \"plain\", \"--user\", \"bo\", \"--from\", \"bo@b.test\"",
            outgoing.port
        );
        format!("{}env = {{ PERIHELION_MAIL_PASSWORD = {password:?} }}\n", table(name, &arguments))
    };
    let words = doctor(&[
        mail("post", office.port, "secret-pass"),
        mail("shut", office.port, "wrong-pass"),
        mail("away", 1, "secret-pass"),
    ])
    .await;
    for part in [
        &format!("✓ server post: 127.0.0.1:{} takes the login", office.port),
        "✓ server post: sent mail is in Outbox, drafts are in Drafts",
        &format!("✓ server post: 127.0.0.1:{} takes the login", outgoing.port),
        "✗ server shut: the mail server refused the name or the password",
        "✗ server away: cannot reach the mail server 127.0.0.1:1",
    ] {
        assert!(words.contains(part), "{part} is not in:\n{words}");
    }
    assert!(!words.contains("secret-pass") && !words.contains("wrong-pass"), "{words}");
}
