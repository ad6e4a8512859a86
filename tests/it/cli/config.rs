//! Configuration, endpoints and databases that are wrong, and the doctor who says so.

use perihelion::llm::scripted::{Reply, Rule, Script};

use super::world::{World, answering};
use crate::support::postgres;

#[tokio::test]
async fn a_settings_file_is_refused_with_line_and_nearest_key() {
    let world = World::new(answering()).await;
    world.write("perihelion.toml", "# mine\n[limits]\nmax_step = 3\n");
    for args in [&["run", "Hi"][..], &["threads"], &["agents"]] {
        let ended = world.run(args).await.code(2);
        assert_eq!(ended.stdout, "");
        ended
            .says("perihelion.toml:3:1: unknown field `max_step`")
            .says("did you mean `max_steps`?");
    }
    world.run(&["--config", "no.toml", "threads"]).await.code(2).says("cannot read no.toml");
    world.write("perihelion.toml", "");
    world.run(&["--database", "mysql://x", "threads"]).await.code(2).says("--database");
    world.run(&["--log", "a=b=c", "threads"]).await.code(2).says("log filter");
}

#[tokio::test]
async fn options_go_before_the_environment_and_that_before_the_file() {
    let mut world = World::new(answering()).await;
    world.write("perihelion.toml", "[models]\nmodel = \"from-file\"\n");
    world.set("OPENAI_MODEL", "");
    world.run(&["run", "Hi", "-q"]).await.code(0);
    world.set("OPENAI_MODEL", "from-env");
    world.run(&["run", "Hi", "-q"]).await.code(0);
    world.run(&["run", "Hi", "-q", "--model", "from-option"]).await.code(0);
    let requests = world.model.requests();
    let models: Vec<_> = requests.iter().step_by(2).map(|one| &one.body["model"]).collect();
    assert_eq!(models, ["from-file", "from-env", "from-option"]);
}

#[tokio::test]
async fn a_servers_file_is_refused_with_the_table_and_the_variable() {
    let world = World::new(answering()).await;
    world.write(
        "mcp-servers.toml",
        "[mcp_servers.x]\ncommand = \"x\"\nargs = [\"${NO_SUCH_VARIABLE}\"]\nrequired = true\n",
    );
    world.run(&["run", "Hi"]).await.code(1).says("NO_SUCH_VARIABLE").says("mcp-servers.toml");
    world.write("mcp-servers.toml", "[mcp_servers.x]\ncomand = \"x\"\n");
    world.run(&["agents"]).await.code(2).says("did you mean `command`?");
    world
        .run(&["--servers", "none.toml", "agents"])
        .await
        .code(2)
        .says("does not exist: none.toml");
    world.write("mcp-servers.toml", "[mcp_servers.x]\ncommand = \"/nowhere/x\"\nrequired = true\n");
    let ended = world.run(&["run", "Hi"]).await.code(1);
    assert_eq!(ended.stdout, "");
    ended.says("required MCP server is not available").says("required = false");
}

#[tokio::test]
async fn a_run_without_a_model_names_the_setting_and_creates_no_file() {
    let mut world = World::new(answering()).await;
    world.set("OPENAI_BASE_URL", "");
    world.set("OPENAI_API_KEY", "");
    let ended = world.run(&["run", "Hi", "--json"]).await.code(2);
    assert_eq!(ended.json()["error"]["type"], "usage");
    ended.says("no model endpoint is configured: set OPENAI_BASE_URL");
    assert!(!world.path("data").exists());
    world.run(&["threads"]).await.code(0);
    world.run(&["agents"]).await.code(0);
}

#[tokio::test]
async fn an_unreachable_database_is_named_without_its_password() {
    let world = World::new(answering()).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://ann:s3cret@127.0.0.1:{port}/p");
    for args in [&["run", "Hi"][..], &["threads"], &["resume", "x"]] {
        let args: Vec<&str> = args.iter().copied().chain(["--database", &url]).collect();
        let ended = world.run(&args).await.code(1);
        assert_eq!(ended.stdout, "");
        assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
        ended.says(&format!("127.0.0.1:{port}/p")).says("check --database or DATABASE_URL");
    }
    let nowhere = ["--database", "sqlite:/proc/no/p.db"];
    world.run(&[&nowhere[..], &["run", "Hi"]].concat()).await.code(1).says("/proc/no/p.db");
}

/// A name that was mistyped makes no second, empty database.
#[tokio::test]
async fn commands_that_only_read_create_no_database() {
    let world = World::new(answering()).await;
    let all = [
        &["threads"][..],
        &["threads", "show", "x"],
        &["trace", "x"],
        &["replay", "x"],
        &["resume", "x"],
        &["approvals"],
        &["keys", "list"],
        &["keys", "revoke", "x"],
        &["users", "list"],
        &["documents"],
        &["documents", "show", "x"],
        &["skills"],
        &["skills", "export"],
        &["teams"],
        &["teams", "show", "x"],
        &["memory", "--user", "ada"],
    ];
    for args in all {
        let args = [args, &["--database", "sqlite:typo/x.db"]].concat();
        world.run(&args).await.code(2).says("there is no database at sqlite:typo/x.db");
        assert!(!world.path("typo").exists());
    }
    let serve = ["trace", "serve", "--addr", "127.0.0.1:0", "--database", "sqlite:typo/x.db"];
    world.run(&serve).await.code(2).says("there is no database at sqlite:typo/x.db");
    let doctor = world.run(&["doctor", "--database", "sqlite:typo/x.db"]).await.code(0);
    let missing = "! database: sqlite:typo/x.db does not exist yet";
    assert!(doctor.stdout.contains(missing) && !world.path("typo").exists(), "{doctor:?}");
    for args in all {
        world.run(args).await;
        assert!(!world.path("data/perihelion/perihelion.db").exists(), "{args:?}");
    }
    world.run(&["threads"]).await.code(0).says("no threads yet");
    world.run(&["keys", "list"]).await.code(0).says("no keys yet");
    world.run(&["threads", "show", "x"]).await.code(2).says("unknown thread: x");
    assert!(!world.path("data/perihelion").exists(), "nor does it make the usual one");
}

/// An unset variable in a script must not put everything on one thread.
#[tokio::test]
async fn a_thread_has_a_name_that_is_not_empty() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "--thread", ""]).await.code(2).says("--thread");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "-q"]).await.code(0);
    let path = world.path("data/perihelion/perihelion.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
    sqlx::raw_sql("PRAGMA user_version = 9001").execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    let ended = world.run(&["threads"]).await.code(1);
    assert_eq!(ended.stdout, "");
    ended.says("newer version of perihelion").says("upgrade this binary");
}

/// X4
#[tokio::test]
async fn the_same_commands_work_on_postgres_by_one_variable() {
    let mut world = World::new(super::world::noting()).await;
    let database = postgres::server().await.fresh().await;
    world.set("DATABASE_URL", &database.url);
    let run = world.run(&["run", "Note it", "--thread", "n", "--json"]).await.code(0).json();
    let list = world.run(&["threads", "--json"]).await.code(0).json();
    assert_eq!(list[0]["thread_id"], run["thread_id"]);
    let history = world.run(&["threads", "history", "n", "--json"]).await.code(0).json();
    assert_eq!(history.as_array().unwrap().len(), 6);
    let doctor = world.run(&["doctor"]).await.code(0);
    assert!(doctor.stdout.contains("✓ database: postgres"), "{doctor:?}");
    let is_exempt = doctor.stdout.contains("database: the role is a superuser or has BYPASSRLS");
    let expected: bool = sqlx::query_scalar(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user",
    )
    .fetch_one(&mut database.connect_as_owner().await)
    .await
    .unwrap();
    assert_eq!(is_exempt, expected, "{doctor:?}");
    assert!(!world.path("data").exists());
}

#[tokio::test]
async fn the_doctor_finds_everything_well_on_a_working_machine() {
    let world = World::new(answering()).await;
    let doctor = world.run(&["doctor"]).await.code(0);
    for line in [
        "✓ settings: defaults and environment variables, no file",
        "✓ database: sqlite:",
        "✓ model: scripted at http://127.0.0.1:",
        "✓ server files: 3 tools, agent mcp_agent_files",
        "✓ server notes: 2 tools",
    ] {
        assert!(doctor.stdout.contains(line), "missing: {line}\n{}", doctor.stdout);
    }
    let threads = world.run(&["threads", "--json"]).await.code(0);
    assert_eq!(threads.stdout, "[]\n", "the doctor leaves no thread behind");
}

#[tokio::test]
async fn the_doctor_gives_a_fix_for_each_problem() {
    let mut world = World::new(Script::new().rule(Rule::new(Reply::text("x")))).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.set("OPENAI_BASE_URL", &format!("http://127.0.0.1:{port}/v1"));
    world.set("DATABASE_URL", "sqlite:/proc/no/p.db");
    world.write("mcp-servers.toml", "[mcp_servers.broken]\ncommand = \"/nowhere/x\"\n");
    let doctor = world.run(&["doctor"]).await.code(1);
    for line in
        ["✗ database: cannot open", "✗ model: cannot reach", "✗ server broken: cannot start"]
    {
        assert!(doctor.stdout.contains(line), "missing: {line}\n{}", doctor.stdout);
    }
    world.write("perihelion.toml", "[modles]\n");
    let doctor = world.run(&["doctor"]).await.code(1);
    assert!(
        doctor.stdout.contains("✗ settings:") && doctor.stdout.contains("`models`"),
        "{doctor:?}"
    );
}

/// S1.09
#[tokio::test]
async fn agents_are_listed_with_their_tools_and_failures_with_their_reasons() {
    let world = World::new(answering()).await;
    let broken = "[mcp_servers.broken]\ncommand = \"/nowhere/at-all\"\n";
    world.write("mcp-servers.toml", &format!("{broken}{}", super::world::SERVERS));
    let list = world.run(&["agents"]).await.code(0);
    assert!(
        list.stdout.contains("mcp_agent_files") && list.stdout.contains("append_note"),
        "{list:?}"
    );
    assert!(list.stdout.contains("mcp_agent_broken"), "{list:?}");
    list.says("warning: MCP server broken");
    let list = world.run(&["agents", "list", "--json"]).await.code(0).json();
    assert_eq!(list["agents"][0]["name"], "mcp_agent_files");
    assert_eq!(list["failed"][0]["server"], "broken");
    let show = world.run(&["agents", "show", "notes"]).await.code(0);
    assert!(show.stdout.contains("append_note"), "{show:?}");
    let show = world.run(&["agents", "show", "mcp_agent_files", "--json"]).await.code(0).json();
    assert_eq!(show["tools"][0]["repeatable"], true);
    world.run(&["agents", "show", "broken"]).await.code(1).says("MCP server broken has no agent");
}

/// A server gets what this command uses, not what the environment would have been without its options.
#[tokio::test]
async fn options_replace_the_variables_that_servers_get() {
    let mut world = World::new(answering()).await;
    world.set("DATABASE_URL", "sqlite:one.db");
    let server = r#"
        [mcp_servers.nosy]
        command = "sh"
        args = ["-c", 'echo "$DATABASE_URL $OPENAI_MODEL" > seen.txt']
        env_vars = ["DATABASE_URL", "OPENAI_MODEL"]
    "#;
    world.write("mcp-servers.toml", server);
    world.run(&["agents", "--database", "sqlite:other.db", "--model", "m2"]).await;
    assert_eq!(world.read("seen.txt").trim(), "sqlite:other.db m2");
    world.run(&["agents", "--model", "m2"]).await;
    assert_eq!(world.read("seen.txt").trim(), "sqlite:one.db m2");
}
