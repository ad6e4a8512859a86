//! Keys and users of the service, and approvals, by the command line (S3.04, S3.09).

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};

use super::metrics::Served;
use super::world::{SERVERS, World, answering, approved, select};

/// S3.04
#[tokio::test]
async fn a_key_is_printed_once_and_listed_without_its_secret() {
    let world = World::new(Script::new()).await;
    world.run(&["keys", "list"]).await.code(0).says("no keys yet");
    let made = world.run(&["keys", "create", "ci", "--scopes", "read,run", "--expires", "90d"]);
    let made = made.await.code(0).says("cannot be shown again");
    let secret = made.stdout.trim().to_owned();
    assert!(secret.starts_with("ph_") && secret.len() > 40, "{made:?}");
    world.run(&["keys", "create", "ci"]).await.code(2).says("the name is taken");
    world.run(&["keys", "create", "ci", "--tenant", "acme"]).await.code(0);
    world.run(&["keys", "create", "x", "--scopes", "all"]).await.code(2).says("read, run");
    for never in ["soon", "0d"] {
        let refused = world.run(&["keys", "create", "x", "--expires", never]).await.code(2);
        refused.says("12h, 30d").says("2027-01-31T00:00:00Z");
    }
    for command in ["keys", "users", "documents", "teams", "skills", "memory"] {
        world.run(&[command, "list", "--tenant", ""]).await.code(2).says("--tenant");
    }

    let listed = world.run(&["keys", "list"]).await.code(0);
    assert!(listed.stdout.contains("ci  read,run") && listed.stdout.contains("until "));
    assert!(!listed.stdout.contains(&secret));
    world.run(&["keys", "revoke", "ci"]).await.code(0).says("revoked: ci");
    world.run(&["keys", "revoke", "ci"]).await.code(2).says("no key of this name: ci");
    let listed = world.run(&["keys", "list", "--json"]).await.code(0).json();
    assert!(listed[0]["revoked_at"].is_string(), "{listed}");
    let other = world.run(&["keys", "list", "--tenant", "acme"]).await.code(0);
    assert!(other.stdout.contains("active"), "{other:?}");
}

/// S3.04
#[tokio::test]
async fn the_password_of_a_user_is_read_from_standard_input() {
    let world = World::new(Script::new()).await;
    world.run(&["keys", "create", "early", "--user", "Ada"]).await.code(0);
    world.run(&["users", "add", "ada"]).await.code(2).says("standard input");
    let add = ["users", "add", "ada"];
    world.run_with_input(&add, "too short\n").await.code(2).says("at least 10");
    let lines = "correct horse battery\nanother line\n";
    world.run_with_input(&add, lines).await.code(0).says("added: ada");
    world.run_with_input(&add, "correct horse battery\n").await.code(2).says("taken");
    let listed = world.run(&["users", "list"]).await.code(0);
    assert!(listed.stdout.starts_with("ada  read,run,approve"), "{listed:?}");
    // Names are read in any letter case; those of other issuers stay as they are.
    for (name, user, stored) in [("laptop", "Ada", "ada"), ("other", "Bob|x", "Bob|x")] {
        let create = ["keys", "create", name, "--user", user, "--json"];
        assert_eq!(world.run(&create).await.code(0).json()["user"], stored);
    }
    world.run(&["users", "disable", "Ada"]).await.code(0);
    world.run(&["users", "list"]).await.code(0).says("no users yet");
    let listed = world.run(&["keys", "list"]).await.code(0);
    let line = |name: &str| listed.stdout.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("laptop").contains("user disabled") && line("other").contains("active"));
    assert!(line("early").contains("user disabled"), "a name in other letter case: {listed:?}");
    let listed = world.run(&["keys", "list", "--json"]).await.code(0).json();
    let disabled = |name: &str| {
        listed.as_array().unwrap().iter().find(|key| key["name"] == name).unwrap()["user_disabled"]
            .clone()
    };
    assert_eq!(["laptop", "early", "other"].map(disabled), [true, true, false]);
    let create = ["keys", "create", "late", "--user", "ADA"];
    world.run(&create).await.code(2).says("the user is disabled").says("ada");
}

/// A key of another tenant is accepted, but sees nothing of the demo.
#[tokio::test]
async fn serving_the_demo_names_the_tenant_whose_keys_see_its_data() {
    let world = World::new(Script::new()).await;
    let mut served = Served::start(&world, &["serve", "--demo", "--addr", "127.0.0.1:0"]).await;
    served.until("--tenant demo").await;
    for (tenant, sees) in [("demo", true), ("default", false)] {
        let create = ["keys", "create", "reports", "--tenant", tenant];
        let key = world.run(&create).await.code(0).stdout.trim().to_owned();
        let (code, teams) = served.get_with_key("/v1/teams", &key).await;
        assert_eq!((code, teams.contains("time_desk")), (200, sees), "{tenant}: {teams}");
    }
    served.stop().await;
}

/// S3.09
#[tokio::test]
async fn approvals_are_listed_over_all_threads_and_decided_once() {
    let note = |text: &str| Reply::call("append_note", serde_json::json!({ "text": text }));
    let calls = |text| Rule::new(note(text)).role(Role::Agent).after_tool_results(0);
    let script = Script::new()
        .rule(calls("Buy eggs.").contains("eggs"))
        .rule(calls("Buy milk."))
        .rule(Rule::new(Reply::text("It is noted.")).role(Role::Agent))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor).contains("<result number="))
        .rule(Rule::new(select(&["mcp_agent_notes"])).role(Role::Supervisor))
        .rule(approved())
        .rule(Rule::new(Reply::text("Done.")).role(Role::Qa));
    let world = World::new(script).await;
    let gated = format!("{SERVERS}default_tools_approval_mode = \"prompt\"\n");
    world.write("mcp-servers.toml", &gated);
    world.run(&["approvals"]).await.code(0).says("no calls are waiting for approval");
    for what in ["milk", "eggs"] {
        world.run(&["run", &format!("Note {what}."), "--thread", what, "-q"]).await.code(3);
    }
    let all = world.run(&["approvals", "list", "--json"]).await.code(0).json();
    let id = |index: usize| all[index]["id"].as_str().unwrap().to_owned();
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    let shown = world.run(&["approvals", "show", &id(0)]).await.code(0);
    assert!(shown.stdout.contains("Buy milk."), "{shown:?}");
    let table = world.run(&["approvals"]).await.code(0);
    assert!(table.stdout.contains("notes.append_note") && table.stdout.contains(&id(1)));

    let done = world.run(&["approvals", "approve", &id(0), "-q"]).await.code(0);
    assert_eq!(done.stdout, "Done.\n");
    let again = ["approvals", "approve", &id(0)];
    world.run(&again).await.code(2).says("no pending request has this ID");
    world.run(&["approvals", "deny", &id(1), "--reason", "no eggs", "-q"]).await.code(0);
    let notes = world.read("notes.jsonl");
    assert!(notes.contains("milk") && !notes.contains("eggs"), "{notes}");
    world.run(&["approvals"]).await.code(0).says("no calls are waiting for approval");
}

/// A program gets JSON from every command that takes the option.
#[tokio::test]
async fn changes_are_reported_as_json() {
    let world = World::new(answering()).await;
    world.run(&["run", "Hi", "--thread", "t", "-q"]).await.code(0);
    world.run(&["keys", "create", "ci"]).await.code(0);
    let add = ["users", "add", "ada"];
    world.run_with_input(&add, "correct horse battery\n").await.code(0);
    world.write("team.json", TEAM);
    world.write("skills.jsonl", "");
    for (args, key) in [
        (&["keys", "revoke", "ci"][..], "revoked"),
        (&["users", "disable", "ada"], "disabled"),
        (&["memory", "set", "tone", "brief", "--user", "ada"], "value"),
        (&["memory", "delete", "tone", "--user", "ada"], "deleted"),
        (&["teams", "import", "team.json"], "version"),
        (&["teams", "delete", "readers"], "deleted"),
        (&["skills", "import", "skills.jsonl"], "imported"),
        (&["documents", "reindex"], "embedded"),
        (&["threads", "delete", "t", "--yes"], "deleted"),
    ] {
        let done = world.run(&[args, &["--json"]].concat()).await.code(0);
        assert!(done.json().get(key).is_some(), "{done:?}");
    }
}

const TEAM: &str = r#"{ "name": "readers", "description": "Reads files.",
    "agents": [{ "name": "reader", "role": "reads", "goal": "Read.", "servers": ["files"] }] }"#;
