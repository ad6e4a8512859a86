//! Files and addresses of the settings that a run cannot use: `doctor` names each with its key and the way out.

use super::world::{World, answering};

/// An address where nothing listens.
const CLOSED: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn unusable_files_and_addresses_of_the_settings_are_reported_with_their_keys() {
    let mut world = World::new(answering()).await;
    let url = CLOSED;
    let oidc = format!(
        r#"{{ "issuer": "{url}", "client_id": "p", "client_secret": "top-secret", "public_url": "https://p.example" }}"#
    );
    world.set("PERIHELION_SERVE_OIDC", &oidc);
    world.write(
        "perihelion.toml",
        &format!(
            "[log]\nfilter = \"perihelion=loud\"\n[prompts]\ndir = \"no-prompts\"\n\
             [archive]\ndir = \"no-archive\"\n[metrics]\notlp_endpoint = \"{url}/v1/metrics\"\n\
             [embeddings]\nurl = \"{url}/v1\"\n[documents]\nparser = \"{url}\"\n\
             [models.roles.reranker]\nurl = \"{url}/v1\"\n\
             [models.roles.qa]\nmodel = \"other\"\napi_key_env = \"NO_KEY\"\n\
             [models.agents.file]\ntemperature = 0.0\n\
             [serve]\norigins = [\"https://a.example/\", \"tauri://localhost\"]\nhosts = [\"b.example:80\"]\n\
             callback_hosts = [\"http://c.example\", \"d.example:80\"]\n[serve.jwt]\nissuer = \"https://i.example\"\naudience = \"p\"\njwks_url = \"{url}/keys?token=hidden\"\n"
        ),
    );
    let doctor = world.run(&["doctor"]).await.code(1).stdout;
    for (line, end) in [
        (
            "✗ log: invalid log filter: perihelion=loud",
            "correct log.filter, PERIHELION_LOG or --log",
        ),
        ("✗ prompts: the prompt template no-prompts", "correct prompts.dir"),
        ("✗ archive: no-archive", "correct archive.dir"),
        (&format!("✗ metrics: {url}/v1/metrics"), "check metrics.otlp_endpoint and the collector"),
        (
            &format!("! embeddings: the embeddings endpoint failed: {url}/v1: Connection refused"),
            "",
        ),
        (
            &format!("! document parser: {url} does not answer: Connection refused"),
            "correct documents.parser",
        ),
        (
            &format!(
                "✗ model of models.roles.reranker: cannot reach the model endpoint {url}/v1: Connection refused"
            ),
            "",
        ),
        (
            "! model other: requests have no API key, because NO_KEY is not set",
            "remove api_key_env",
        ),
        (
            "! models.agents.file has no effect: there is no server of this name",
            "(did you mean files?)",
        ),
        ("! serve.origins matches no request", ": https://a.example/"),
        ("! serve.hosts matches no request", ": b.example:80"),
        ("! serve.callback_hosts matches no request", ": http://c.example"),
        (
            &format!(
                "✗ serve.oidc: error sending request for url ({url}/.well-known/openid-configuration): Connection refused"
            ),
            "correct [serve.oidc], or start the issuer",
        ),
        (
            &format!(
                "✗ serve.jwt: cannot use the issuer's keys: error sending request for url ({url}/keys): Connection refused"
            ),
            "correct [serve.jwt], or start the issuer",
        ),
    ] {
        let is_there = |one: &str| one.starts_with(line) && one.ends_with(end);
        assert!(doctor.lines().any(is_there), "{line} … {end} is not in:\n{doctor}");
    }
    for absent in ["top-secret", "hidden", "tauri", "d.example"] {
        assert!(!doctor.contains(absent), "{doctor}");
    }
}
