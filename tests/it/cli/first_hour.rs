//! What a new user stumbles over: each thing is named with its way out, and costs no more than itself.

use std::collections::BTreeSet;
use std::time::Duration;

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};

use super::world::{SERVERS, World, answering, first};

fn closed_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// S3.12: what is wrong with one server leaves the others as they are.
#[tokio::test]
async fn an_unset_variable_or_an_old_transport_costs_one_server_alone() {
    let world = World::new(answering()).await;
    world.write(
        ".mcp.json",
        r#"{ "mcpServers": { "old": { "type": "sse", "url": "http://127.0.0.1:1/sse" } } }"#,
    );
    let table =
        "[mcp_servers.x]\ncommand = \"x\"\nargs = [\"${NO_A}\"]\nenv = { B = \"${NO_B}\" }\n";
    world.write("mcp-servers.toml", &format!("import = [\".mcp.json\"]\n{table}{SERVERS}"));
    let agents = world.run(&["agents"]).await.code(0);
    assert!(agents.stdout.contains("mcp_agent_files"), "{agents:?}");
    let agents = agents.says("MCP server x").says("are not set: NO_A, NO_B");
    agents.says("MCP server old").says("the old HTTP+SSE transport is not supported");
    let run = world.run(&["run", "Hi", "-q"]).await.code(0);
    assert_eq!(run.stdout, "Hello.\n");
    run.says("NO_A, NO_B").says("HTTP+SSE");
    let import = world.run(&["agents", "import", ".mcp.json"]).await.code(0);
    import.says("it was left out").says("HTTP+SSE");
}

#[tokio::test]
async fn an_unknown_variable_of_the_programs_own_is_refused_with_the_nearest() {
    let mut world = World::new(answering()).await;
    world.set("PERIHELION_LIMIT_MAX_STEPS", "3");
    let ended = world.run(&["threads"]).await.code(2);
    ended.says("unknown environment variable: PERIHELION_LIMIT_MAX_STEPS; did you mean PERIHELION_LIMITS_MAX_STEPS?");
    world.write("perihelion.toml", "[models]\nulr = \"http://localhost\"\n");
    world.run(&["threads"]).await.code(2).says("did you mean `url`?");
}

#[tokio::test]
async fn init_writes_both_files_and_replaces_existing_ones_only_on_request() {
    let world = World::new(answering()).await;
    std::fs::remove_file(world.path("mcp-servers.toml")).unwrap();
    let none = world.run(&["run", "Hi", "-q"]).await;
    none.says(
        "no agents, because mcp-servers.toml does not exist; create it with `perihelion init`",
    );
    world.run(&["agents"]).await.code(0).says("`perihelion init`");
    let doctor = world.run(&["doctor"]).await.code(0);
    assert!(doctor.stdout.contains("! no agents"), "{doctor:?}");

    world.run(&["init"]).await.code(0).says("wrote perihelion.toml").says("wrote mcp-servers.toml");
    let doctor = world.run(&["doctor"]).await.code(0).stdout;
    assert!(doctor.contains("✓ server files"), "{doctor}");
    world.write("perihelion.toml", "# mine\n");
    world
        .run(&["init"])
        .await
        .code(2)
        .says("file already exists: perihelion.toml, mcp-servers.toml");
    assert_eq!(world.read("perihelion.toml"), "# mine\n");
    std::fs::remove_file(world.path("mcp-servers.toml")).unwrap();
    world.run(&["init"]).await.code(0).says("kept perihelion.toml").says("wrote mcp-servers.toml");
    world.run(&["init", "--force"]).await.code(0);
    assert!(world.read("perihelion.toml").contains("[models]"));
}

/// The next command, given the same options and variables, reads what was written.
#[tokio::test]
async fn init_writes_a_pair_of_files_that_fit_wherever_they_are() {
    for (options, variables, servers) in [
        (&["--config", "etc/p.toml"][..], &[][..], "etc/mcp-servers.toml"),
        (
            &["--config", "sub/p.toml", "--servers", "the \"team\"/x.toml"],
            &[],
            "the \"team\"/x.toml",
        ),
        (&[], &[("PERIHELION_CONFIG", "a/p.toml"), ("PERIHELION_SERVERS", "b/s.toml")], "b/s.toml"),
        (&["--servers", "team/x.toml"], &[], "team/x.toml"),
    ] {
        let mut world = World::new(answering()).await;
        std::fs::remove_file(world.path("mcp-servers.toml")).unwrap();
        for (name, value) in variables {
            world.set(name, value);
        }
        world.run(&[options, &["init"]].concat()).await.code(0).says(&format!("wrote {servers}"));
        let same = world.run(&[options, &["agents"]].concat()).await.code(0);
        // The settings name the servers file by themselves.
        world.set("PERIHELION_SERVERS", "");
        let config: &[&str] = if options.contains(&"--config") { &options[..2] } else { &[] };
        let alone = world.run(&[config, &["agents"]].concat()).await.code(0);
        for agents in [same, alone] {
            assert!(agents.stdout.contains("mcp_agent_files"), "{servers}: {agents:?}");
        }
    }
}

/// X12: the settings of a server on this machine are written with what it does.
#[tokio::test]
async fn init_finds_the_model_server_on_this_machine() {
    let mut world = World::new(answering()).await;
    let url = world.model.url().to_owned();
    world.set("OPENAI_BASE_URL", "");
    world.set("OPENAI_MODEL", "");
    world.set("OPENAI_API_KEY", "");
    world
        .run(&["init", "--local", &url])
        .await
        .code(0)
        .says("scripted")
        .says("`perihelion doctor`");
    let settings = world.read("perihelion.toml");
    // The scripted model takes schemas and does not enforce them.
    for line in [
        &*format!("url = \"{url}\""),
        "model = \"scripted\"",
        "protocol = \"compact\"",
        "json_mode = \"text\"",
    ] {
        assert!(settings.lines().any(|one| one == line), "{line} is not in:\n{settings}");
    }
    let closed = format!("http://127.0.0.1:{}/v1", closed_port());
    let none = world.run(&["init", "--force", "--local", &closed]).await.code(2);
    none.says(&format!("no model server answers at {closed}"));
}

/// X12: what an endpoint does is said with what follows from it.
#[tokio::test]
async fn the_doctor_says_what_the_endpoint_does() {
    let mut world = World::new(answering()).await;
    world.set("PERIHELION_MODELS_CONTEXT_WINDOW", "4096");
    let doctor = world.run(&["doctor"]).await.code(0).stdout;
    for line in [
        "! model scripted: accepts JSON schemas, but does not enforce them",
        "! model scripted: the prompt has as many tokens with tools as without",
        "✓ model scripted: counts tokens",
        "✓ model scripted: prompts are fitted into 4096 tokens",
    ] {
        assert!(doctor.contains(line), "{line} is not in:\n{doctor}");
    }
}

/// X12: a limit on tokens binds where the endpoint counts none, and the record says that they are estimated.
#[tokio::test]
async fn tokens_that_the_endpoint_does_not_count_are_estimated() {
    let mut script = super::world::reading();
    script.rules.iter_mut().for_each(|rule| rule.reply.without_usage = true);
    let mut world = World::new(script).await;
    world.set("PERIHELION_LIMITS_MAX_TOKENS", "500");
    let run = world.run(&["run", "What is it?", "--thread", "t", "--json", "-q"]).await.json();
    assert_eq!(run["finish_reason"], "limit", "{run}");
    assert_eq!(run["usage"]["estimated"], true, "{run}");
    world.run(&["replay", "t"]).await.code(0);
}

#[tokio::test]
async fn the_doctor_suggests_the_v1_ending_for_an_address_without_models() {
    let mut world = World::new(answering()).await;
    let url = world.model.url().trim_end_matches("/v1").to_owned();
    world.set("OPENAI_BASE_URL", &url);
    let doctor = world.run(&["doctor"]).await.code(1).stdout;
    let line = doctor.lines().find(|line| line.starts_with("✗ model")).unwrap_or_default();
    assert!(line.contains("404") && line.ends_with("should it end in /v1?"), "{doctor}");
}

#[tokio::test]
async fn a_refused_key_is_named_by_its_variable_and_whether_it_is_set() {
    let refuse = Script::new().rule(Rule::new(Reply::status(401, "no such key")));
    let mut world = World::new(refuse).await;
    let run = world.run(&["run", "Hi", "-q"]).await;
    let run =
        run.says("status 401: no such key; the key is read from OPENAI_API_KEY, which is set");
    drop(run);
    world.set("OPENAI_API_KEY", "");
    let run = world.run(&["run", "Hi", "-q"]).await;
    run.says("the key is read from OPENAI_API_KEY, which is not set");
}

#[tokio::test]
async fn a_retry_is_one_short_line() {
    let mut world = World::new(answering()).await;
    let url = format!("http://127.0.0.1:{}/v1", closed_port());
    world.set("OPENAI_BASE_URL", &url);
    world.set("PERIHELION_MODELS_MAX_RETRIES", "2");
    world.set("PERIHELION_MODELS_BACKOFF_MS", "1");
    let run = world.run(&["run", "Hi", "-q"]).await;
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("retry ")).collect();
    assert!(lines[0].contains(&format!("no answer from {url} (")), "{run:?}");
    assert!(lines[0].contains("retry 1 of 2 in ") && lines[1].contains("retry 2 of 2"), "{run:?}");
    assert!(lines.iter().all(|line| line.chars().count() < 160), "{run:?}");
    run.says("Connection refused").says("no server listens there: start the model server");
}

#[tokio::test]
async fn the_report_of_an_unreachable_server_includes_the_refused_connection() {
    let world = World::new(answering()).await;
    let url = format!("http://127.0.0.1:{}/mcp", closed_port());
    world.write("mcp-servers.toml", &format!("[mcp_servers.away]\nurl = {url:?}\n"));
    world.run(&["agents"]).await.code(0).says("MCP server away").says("Connection refused");
}

#[tokio::test]
async fn usage_errors_are_json_if_json_is_requested() {
    let world = World::new(answering()).await;
    for args in [
        &["run", "Hi", "--json", "--no-such-option"][..],
        &["threads", "show", "nobody", "--json"],
        &["resume", "nobody", "--json"],
    ] {
        let ended = world.run(args).await.code(2);
        let error = &ended.json()["error"];
        assert_eq!(error["type"], "usage", "{args:?}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{args:?}");
    }
    assert_eq!(world.run(&["run", "--no-such-option"]).await.code(2).stdout, "");
}

/// S2.01: a program reads what happens while it happens, and the result last.
#[tokio::test]
async fn events_are_lines_of_json_with_the_result_last() {
    let world = World::new(super::world::reading()).await;
    let run = world.run(&["run", "What is it?", "--events", "-q"]).await.code(0);
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, events) = lines.split_last().unwrap();
    assert_eq!((&last["status"], &last["answer"]), (&"done".into(), &"It is 42 [1].".into()));
    assert!(events.iter().all(|event| event["type"].is_string()), "{run:?}");
    let is_call = |event: &&serde_json::Value| event["payload"]["tool"] == "files.read";
    assert!(events.iter().any(|event| is_call(&event)), "{run:?}");
    // The page marks the types that are printed.
    let page = std::fs::read_to_string(EVENTS_PAGE).unwrap();
    let rows = |end: &str| -> BTreeSet<String> {
        let rows = page.lines().filter(|line| line.ends_with(end));
        rows.filter_map(|row| Some(row.split('`').nth(1)?.to_owned())).collect()
    };
    let printed: BTreeSet<String> =
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    let marked = rows("| Yes |");
    assert!(printed.is_subset(&marked), "{printed:?}, marked: {marked:?}");
    let always = ["checkpoint", "published", "task_ended", "task_started"];
    assert!(always.iter().all(|kind| printed.contains(*kind)), "{printed:?}");
    assert!(rows("| No |").iter().eq(["run_ended", "update", "values"]), "{:?}", rows("| No |"));
}

const EVENTS_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/events.md");

const SCHEMA: &str = r#"{ "type": "object", "required": ["number"], "additionalProperties": false,
    "properties": { "number": { "type": "integer" } } }"#;

/// S2.01: an answer of a form of one's own; what breaks it is shown to the model and fixed.
#[tokio::test]
async fn an_answer_has_the_form_of_the_schema_that_was_given() {
    let wrong = Rule::new(Reply::text("It is 42.")).role(Role::Qa).times(1);
    let right = Rule::new(Reply::text(r#"{"number": 42}"#)).role(Role::Qa);
    let world = World::new(first(wrong, first(right, super::world::reading()))).await;
    world.write("number.json", SCHEMA);
    let args = ["run", "What is it?", "--schema", "number.json"];
    let run = world.run(&[&args[..], &["-q"]].concat()).await.code(0);
    assert_eq!(run.stdout, "{\"number\":42}\n");
    let asked = world.model.requests().into_iter().filter(|one| one.role == "qa");
    let formats: Vec<_> =
        asked.map(|one| one.body["response_format"]["json_schema"]["name"].clone()).collect();
    assert_eq!(formats, ["answer", "answer"]);
    let json = world.run(&[&args[..], &["--json"]].concat()).await.code(0).json();
    assert_eq!(json["structured"]["number"], 42);
    world.write("number.json", "[1]");
    world.run(&args).await.code(2).says("must describe an object");
}

/// An error leads to its remedy, and a search without a match says so.
#[tokio::test]
async fn an_error_is_explained_by_its_code() {
    let world = World::new(answering()).await;
    let failed = world.run(&["threads", "show", "nowhere", "--json"]).await.code(2);
    let code = failed.json()["error"]["code"].as_str().unwrap().to_owned();
    let explained = world.run(&["explain", &code]).await.code(0);
    assert!(explained.stdout.contains("remedy"), "{explained:?}");
    world.run(&["explain", "no.such"]).await.code(2).says("perihelion explain");
    let all = world.run(&["explain", "--json"]).await.code(0).json();
    assert!(all.as_array().unwrap().len() > 100, "{all}");
    world.run(&["skills", "search", "maps"]).await.code(0).says("no skills match: maps");
}

#[tokio::test]
async fn doctor_checks_if_a_service_is_ready() {
    let mut world = World::new(Script::new()).await;
    // It accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let address = world.model.url().replace("/v1", "");
    for (url, words) in [
        ("http://127.0.0.1:9", "does not answer: Connection refused"),
        ("127.0.0.1:9", "does not answer: "),
        (&silent, "does not answer: "),
        (&address, "not ready"),
    ] {
        let args = ["doctor", "--service", url];
        let asked = tokio::time::timeout(Duration::from_secs(20), world.run(&args)).await;
        let asked = asked.unwrap().code(1);
        assert!(asked.stdout.contains(words), "{asked:#?}");
        assert!(!asked.stdout.contains("builder error"), "{asked:#?}");
    }
    // Without a URL, it is the service of these settings.
    let port = address.rsplit(':').next().unwrap();
    world.set("PERIHELION_SERVE_ADDR", &format!("0.0.0.0:{port}"));
    let own = world.run(&["doctor", "--service"]).await.code(1);
    assert!(own.stdout.contains("not ready"), "{own:#?}");
}

#[tokio::test]
async fn doctor_names_the_parts_of_the_system_and_their_purposes() {
    let mut world = World::new(answering()).await;
    std::fs::create_dir(world.path("bin")).unwrap();
    world.write("bin/bwrap", "");
    let bin = world.path("bin").display().to_string();
    world.set("PATH", &bin);
    world.set("PERIHELION_DOCUMENTS_PARSER", "./read-scans.sh");
    let doctor = world.run(&["doctor"]).await.code(0).stdout;
    for line in [
        &*format!("✓ bubblewrap: {bin}/bwrap; confines MCP servers and Python programs"),
        "! Python: not found; runs the programs of the bundled python server; install the package python3",
        "! document parser: not found; reads scans and unknown formats; correct documents.parser",
    ] {
        assert!(doctor.lines().any(|one| one == line), "{line} is not in:\n{doctor}");
    }
    let report = world.run(&["doctor", "--json"]).await.code(0).json();
    assert_eq!(report["checks"][0]["status"], "ok", "{report}");
    let parts = report["parts"].as_array().unwrap();
    let of = |name: &str| parts.iter().find(|part| part["name"] == name).unwrap();
    assert_eq!(of("bubblewrap")["path"], format!("{bin}/bwrap"));
    assert!(of("certificates")["purpose"].is_string() && of("pager")["path"].is_null(), "{report}");
    let version = world.run(&["--version"]).await.code(0).stdout;
    assert!(version.contains(report["version"].as_str().unwrap()), "{version}");
    assert!(version.contains("features: "), "{version}");
}
