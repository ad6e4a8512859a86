//! The bound on a server's memory: a call that needs more fails by that name, and everything else continues.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::mcp::{CallContext, Error, Pool, PoolOptions, ServersFile, ToolHost as _};
use serde_json::json;

use crate::cli::world::{self, World, select};
use crate::support::hostile::{program, table};

fn pool(text: &str) -> Pool {
    let env = |name: &str| std::env::var(name).ok();
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), text, &env).unwrap();
    Pool::new(file, PoolOptions::default())
}

async fn take(pool: &Pool, megabytes: u32) -> Result<String, Error> {
    let arguments = json!({ "megabytes": megabytes }).as_object().unwrap().clone();
    Ok(pool.call("x", "echo", arguments, CallContext::default()).await?.text)
}

/// X6
#[tokio::test]
async fn a_server_that_exceeds_its_memory_limit_fails_by_that_name_and_starts_again() {
    let free = pool(&table("x", "swells", ""));
    take(&free, 200).await.unwrap();
    free.close().await;

    let bounded = pool(&table("x", "swells", "memory_mb = 64"));
    take(&bounded, 10).await.unwrap();
    let error = take(&bounded, 200).await.unwrap_err().to_string();
    assert!(error.contains("it reached the bound on its memory"), "{error}");
    assert!(error.contains("64 MB (memory_mb in its table)"), "{error}");
    take(&bounded, 10).await.unwrap();
    bounded.close().await;
}

/// X6
#[tokio::test]
async fn a_memory_limit_applies_in_the_sandbox_too_and_a_missing_program_is_still_named() {
    let program = program();
    let confined = pool(&table("x", "swells", "memory_mb = 64\nsandbox = {}"));
    // Where this machine confines nothing, the reason is tested elsewhere.
    if take(&confined, 10).await.is_ok() {
        let error = take(&confined, 200).await.unwrap_err().to_string();
        assert!(error.contains("(memory_mb in its table)"), "{program:?}: {error}");
    }
    confined.close().await;
    let missing = pool("[mcp_servers.x]\ncommand = \"/nowhere/at-all\"\nmemory_mb = 64\n");
    let error = take(&missing, 1).await.unwrap_err().to_string();
    assert!(error.contains("is it installed"), "{error}");
    missing.close().await;
}

/// X6, S2.11
#[tokio::test]
async fn a_run_continues_after_a_call_that_wanted_too_much_memory() {
    let script = Script::new()
        .rule(Rule::new(select(&["mcp_agent_x"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call("echo", json!({ "megabytes": 200 })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("It is too large.")).role(Role::Agent))
        .rule(world::approved())
        .rule(Rule::new(Reply::text("It is too large to be read.")).role(Role::Qa));
    let world = World::new(script).await;
    let more = "memory_mb = 64\ndefault_tools_effect = \"read_only\"";
    world.write("mcp-servers.toml", &table("x", "swells", more));
    let run = world.run(&["run", "Read it", "-q"]).await.code(0);
    assert_eq!(run.stdout, "It is too large to be read.\n");
    let requests = world.model.requests();
    assert!(requests.iter().any(|one| one.contains("memory_mb in its table")));
}

#[test]
fn an_invalid_memory_limit_is_refused_with_its_position() {
    let refused = |table: &str| {
        let text = format!("[mcp_servers.x]\n{table}\n");
        let parsed = ServersFile::parse("f".as_ref(), &text, &|_| None);
        parsed.err().unwrap().to_string()
    };
    let small = refused("command = \"x\"\nmemory_mb = 1");
    assert!(small.contains("mcp_servers.x.memory_mb: give 8 to 1048576 megabytes"), "{small}");
    let far = refused("url = \"https://example.org/mcp\"\nmemory_mb = 64");
    assert!(far.contains("only a server with a command"), "{far}");
}
