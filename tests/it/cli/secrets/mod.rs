//! What the configuration keeps secret, and what people, models and tools wrote, looked for in every place
//! that the program writes to.
//!
//! A configured secret may stand nowhere. What was said is the product's data: it stands in the database, in
//! what a person asks to see of it (answers, `trace`, its page, exports of threads) and, with
//! `traces.content`, in what is exported as spans; without it, in no export.

mod canaries;
mod places;
mod web;

use canaries::{SECRETS, STATED, found, script};
use places::{Database, Place};
use web::Web;

use super::world::World;
use crate::telemetry::receiver::{Collector, Manner};

/// A machine on which everything that can be secret is set.
struct Machine {
    world: World,
    collector: Collector,
    database: Database,
    web: Web,
}

impl Machine {
    async fn new(grpc: bool, database: Database) -> Self {
        let (collector, url) = if grpc {
            Collector::start_grpc(Manner::default()).await
        } else {
            Collector::start(Manner::default()).await
        };
        let mut world = World::new(script()).await;
        let web = Web::start().await;
        world.write("mcp-servers.toml", &canaries::servers(&web.url));
        if let Some(url) = database.url() {
            world.set("DATABASE_URL", url);
        }
        world.set("INHERITED_TOKEN", "canary-inherited-environment");
        world.set("UNRELATED_TOKEN", "canary-unrelated-environment");
        world.set("BEARER_TOKEN", "canary-bearer-token");
        world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
        world.set("OTEL_EXPORTER_OTLP_PROTOCOL", if grpc { "grpc" } else { "http/protobuf" });
        world.set("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-token=canary%2Dcollector%2Dheader");
        world.set("PERIHELION_LOG_FORMAT", "json");
        Self { world, collector, database, web }
    }

    /// Runs the program and returns both its streams.
    async fn run(&self, args: &[&str], code: i32) -> Vec<Place> {
        let ended = self.world.run(args).await.code(code);
        vec![
            Place::new(format!("the output of {args:?}"), ended.stdout.into_bytes()),
            Place::new(format!("the log of {args:?}"), ended.stderr.into_bytes()),
        ]
    }

    /// Returns what the collector got, once everything has arrived.
    fn sent(&self) -> Place {
        let spans = self.collector.spans();
        assert!(spans.iter().any(|span| span.name == "execute_tool append_note"));
        assert!(spans.iter().any(|span| span.name == "execute_tool look"));
        Place::new("what the collector got", self.collector.bytes())
    }
}

/// Asserts that none of the canaries stands in any of the places.
fn assert_nowhere(places: &[Place], canaries: &[&'static str], case: &str) {
    for place in places {
        assert_eq!(found(&place.bytes, canaries), Vec::<&str>::new(), "{}, {case}", place.name);
    }
}

async fn assert_no_secret(grpc: bool, database: Database, case: &str) {
    let mut machine = Machine::new(grpc, database).await;
    machine.world.set("PERIHELION_TRACES_CONTENT", "true");
    let mut places = Vec::new();
    for (args, code) in [
        (&["run", "canary-said-question", "--thread", "t", "--log", "trace,rmcp=trace"][..], 0),
        (&["trace", "t"], 0),
        (&["trace", "t", "--json"], 0),
        (&["trace", "t", "--otlp"], 0),
        (&["trace", "t", "--out", "page.html"], 0),
        (&["threads", "list"], 0),
        (&["threads", "show", "t"], 0),
        (&["threads", "history", "t"], 0),
        (&["threads", "export", "t"], 0),
        (&["threads", "state", "t"], 0),
        (&["replay", "t", "--log", "trace"], 0),
        (&["agents", "list"], 0),
        (&["agents", "show", "web"], 0),
        (&["doctor", "--log", "trace"], 1),
        (&["resume", "t", "--log", "trace"], 2),
        (&["threads", "--database", "postgres://u:canary-url-password@127.0.0.1:9/x"], 1),
        (&["run", "x", "--model-url", "http://u:canary-url-password@127.0.0.1:9/v1"], 2),
    ] {
        places.extend(machine.run(args, code).await);
    }
    places.extend(places::jaeger(&machine.world).await);
    places.push(Place::new("the page", machine.world.read("page.html").into_bytes()));
    places.push(machine.sent());
    places.extend(places::files(&machine.world));
    places.extend(machine.database.rows(&machine.world).await);

    // They were used, and what was said stands where it belongs: the places are the right ones.
    let headers = machine.collector.headers();
    assert!(headers.iter().all(|one| one["x-token"] == "canary-collector-header"), "{headers:?}");
    machine.web.assert_greeted("canary-bearer-token", "canary-http-header");
    for name in ["what the collector got", "the page", "the rows of effect", "/api/traces/"] {
        let all: Vec<u8> = places.iter().filter(|one| one.name.contains(name)).fold(
            Vec::new(),
            |mut all, place| {
                all.extend(&place.bytes);
                all
            },
        );
        assert!(found(&all, &STATED).contains(&"canary-said-argument"), "{name}, {case}");
    }
    assert_nowhere(&places, &SECRETS, case);
    machine.database.close().await;
}

/// S1.12, X6
#[tokio::test]
async fn no_place_shows_a_configured_secret_on_sqlite_and_over_http() {
    assert_no_secret(false, Database::sqlite(), "SQLite, HTTP").await;
}

/// S1.12, X6
#[tokio::test]
async fn no_place_shows_a_configured_secret_on_postgres_and_over_grpc() {
    assert_no_secret(true, Database::postgres("canary-database-password").await, "Postgres, gRPC")
        .await;
}

/// S1.12: `traces.content` is off by default.
#[tokio::test]
async fn conversations_are_in_no_export_and_no_log_unless_requested() {
    for grpc in [false, true] {
        let machine = Machine::new(grpc, Database::sqlite()).await;
        let asked = ["run", "canary-said-question", "--thread", "t", "--quiet"];
        let more = ["--context", "note=canary-said-context", "--log", "perihelion=trace"];
        let ran = machine.run(&[&asked[..], &more[..]].concat(), 0).await;
        let Ok([answer, log]) = <[Place; 2]>::try_from(ran) else { panic!("two streams") };
        assert_eq!(
            found(&answer.bytes, &STATED),
            ["canary-said-answer"],
            "it is what was asked for"
        );
        let mut exports = machine.run(&["trace", "t", "--otlp"], 0).await;
        exports.extend(machine.run(&["trace", "export", "t"], 0).await);
        exports.extend([log, machine.sent()]);
        exports.extend(places::jaeger(&machine.world).await);
        assert_nowhere(&exports, &STATED, &format!("over gRPC: {grpc}"));

        let rows = machine.database.rows(&machine.world).await;
        let all: Vec<u8> = rows.into_iter().flat_map(|place| place.bytes).collect();
        assert_eq!(found(&all, &STATED), STATED, "the database has it all");
    }
}

/// S1.12, X6: with a key, what was said is not in the database either, nor is the key.
#[tokio::test]
async fn an_encrypted_database_contains_no_plain_text_of_a_conversation() {
    let machine = Machine::new(false, Database::sqlite()).await;
    machine.world.write("one.key", &format!("{}\n", canaries::KEY_AT_REST));
    machine.world.write("perihelion.toml", "[encryption]\nkeys = [\"one=file:one.key\"]\n");
    machine.run(&["run", "canary-said-question", "--thread", "t", "-q"], 0).await;
    let mut places = machine.database.rows(&machine.world).await;
    assert!(places.iter().any(|place| place.name == "the rows of effect"));
    places.extend(places::files(&machine.world).into_iter().filter(Place::is_database));
    assert_nowhere(&places, &STATED, "encrypted");
    assert_nowhere(&places, &[canaries::KEY_AT_REST], "encrypted");
}
