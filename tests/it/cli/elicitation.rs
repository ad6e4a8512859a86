//! A server's question on the command line: shown with a form to type over, checked, answered.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::json;

use super::world::{World, approved, select};

fn ordering(tool: &'static str) -> Script {
    Script::new()
        .rule(Rule::new(select(&["mcp_agent_shop"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call(tool, json!({ "item": "bread" })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("It is on its way.")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text("Done.")).role(Role::Qa))
}

async fn shop(tool: &'static str) -> World {
    let world = World::new(ordering(tool)).await;
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/asking_mcp_server");
    let log = world.path("orders.log");
    let table = format!("[mcp_servers.shop]\ncommand = {program:?}\nenv = {{ LOG = {log:?} }}\n");
    world.write("mcp-servers.toml", &table);
    world
}

#[tokio::test]
async fn a_form_is_shown_with_its_fields_and_taken_when_it_fits() {
    let world = shop("order").await;
    let run = world.run(&["run", "Order bread", "--thread", "o"]).await.code(3);
    run.says("elicitation, mcp_agent_shop")
        .says("shop.order asks: Where to?")
        .says("city (string, required)")
        .says("one of \"fast\", \"slow\"")
        .says("--answer '{\"city\":\"…\",\"speed\":\"slow\"}'")
        .says(" --deny\n");
    let refuse = ["resume", "o", "--answer", r#"{"city": "B"}"#];
    world.run(&refuse).await.code(2).says("does not match the form").says("at /city");
    let answer = ["resume", "o", "--answer", r#"{"city": "Bern"}"#, "-q"];
    let done = world.run(&answer).await.code(0);
    assert_eq!(done.stdout, "Done.\n");
    assert_eq!(world.read("orders.log"), "bread to \"Bern\", \"slow\"\n");
}

/// X6
#[tokio::test]
async fn a_form_is_filled_in_on_a_terminal_and_invalid_values_are_asked_again() {
    let world = shop("order").await;
    let run = ["run", "Order bread", "--thread", "o"];
    let output = world.run_on_a_terminal(&run, "y\n\n\ny\nBern\nfast\n").await.code(0);
    assert!(output.stdout.contains("does not match the form"), "{output:#?}");
    assert_eq!(world.read("orders.log"), "bread to \"Bern\", \"fast\"\n");
}

#[tokio::test]
async fn an_address_is_shown_with_its_host_and_approved_after_the_visit() {
    let world = shop("pay").await;
    let run = world.run(&["run", "Pay", "--thread", "p", "--json", "-q"]).await.code(3).json();
    assert_eq!(run["interrupts"][0]["kind"], "elicitation");
    assert_eq!(run["interrupts"][0]["payload"]["url"], "https://bank.example/pay?order=7");
    world
        .run(&["resume", "p"])
        .await
        .code(3)
        .says("If you trust bank.example, open this address yourself:")
        .says("https://bank.example/pay?order=7");
    let stray = ["resume", "p", "--answer", r#"{"card": "1"}"#];
    world.run(&stray).await.code(2).says("--approve once you have been at the address");
    world.run(&["resume", "p", "--approve", "-q"]).await.code(0);
    assert_eq!(world.read("orders.log"), "paid bread\n");
}
