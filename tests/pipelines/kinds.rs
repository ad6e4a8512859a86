//! Which kind an agent is of, and what becomes of one that does not fit its server.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};

use crate::library::{Kept, Library, approved, script};

/// S3.12
#[tokio::test]
async fn an_unknown_kind_is_refused_with_the_nearest() {
    let library = Library::open(Kept::Sqlite, script(), &[]).await;
    library.serve("agent = \"tool\"");
    let refused = library.perihelion(&["agents"]).await;
    let output = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{output}");
    assert!(
        output.contains("mcp_servers.shelf.agent") && output.contains("did you mean tools?"),
        "{output}"
    );
}

/// S3.12
#[tokio::test]
async fn a_pipeline_without_a_tool_for_a_role_gives_way_to_the_plain_loop() {
    let plain = Rule::new(Reply::text("42")).role(Role::Agent);
    let library = Library::open(Kept::Sqlite, script().rule(plain).rule(approved()), &[]).await;
    library.serve("agent = \"librarian\"\nenabled_tools = [\"read\"]");
    let report = library.run(Some("What is the answer?")).await;
    assert_eq!(report["status"], "done", "{report:#}");
    assert_eq!(report["results"][0]["output"], "42");
    assert!(library.stage("words").is_empty());
}

#[tokio::test]
async fn a_table_names_the_tools_of_roles_without_a_profile() {
    use crate::library::{quotation, words};
    let script = script().rule(words()).rule(quotation()).rule(approved());
    let library = Library::open(Kept::Sqlite, script, &[("a.txt", "The answer is 42.\n")]).await;
    library.serve("agent = \"librarian\"\nagent_tools = { search = \"search\", read = \"read\" }");
    let report = library.run(Some("What is the answer?")).await;
    assert_eq!(report["results"][0]["output"], "42", "{report:#}");
}
