//! The documents agent in the star: searches, ranks, reads around, answers, cites.

use std::sync::Arc;

use serde_json::{Value, json};

use super::endpoint::{Endpoint, willing};
use super::{Home, LEASE, characters};

pub(crate) fn servers(home: &Home, more: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_perihelion");
    let database = home.database();
    let arguments = [&["mcp", "documents", "--database", &database], more].concat();
    format!(
        "[mcp_servers.papers]\ncommand = {program:?}\nargs = {arguments:?}\nagent = \"documents\"\n"
    )
}

/// S3.06, S3.08: the answer cites what there is, its sources reach the final answer, and a citation of nothing is gone.
#[tokio::test(flavor = "multi_thread")]
async fn the_agent_answers_from_documents_with_sources_that_reach_the_answer() {
    let endpoint = Endpoint::willing().await;
    let home = Home::new(Some(endpoint.url.clone()));
    std::fs::write(home.path().join("office.md"), "# Office\n\nA lease ended in May.\n").unwrap();
    home.json(&["documents", "add", ".", "--json"]).await;
    std::fs::write(home.path().join("mcp-servers.toml"), servers(&home, &[])).unwrap();
    let report = home.json(&["run", "What is the rent of the lease?", "--json", "--quiet"]).await;
    assert_eq!(report["status"], "done", "{report}");
    let result = &report["results"][0];
    assert_eq!(result["agent"], "mcp_agent_papers", "{report}");
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("[1]") && !output.contains("[9]"), "{output}");
    let source = &result["sources"][0];
    assert!(source["reference"].as_str().unwrap().contains("Lease"), "{source}");
    assert!(source["quote"].as_str().unwrap().contains("1,250 crowns"), "{source}");
    assert_eq!(characters(LEASE, &source["start"], &source["end"]), source["quote"]);

    // The citation opens at its place: id, title, section and characters; what named nothing was counted.
    let listed = home.json(&["documents", "list", "--json"]).await;
    let lease = listed.as_array().unwrap().iter().find(|one| one["title"] == "Lease").unwrap();
    let of_document = |one: &&Value| one["arguments"]["document"].is_string();
    let citation = report["citations"].as_array().unwrap().iter().find(of_document).unwrap();
    let named = &citation["arguments"];
    assert_eq!(named["document"], lease["id"], "{citation}");
    assert_eq!((&named["title"], &named["page"]), (&json!("Lease"), &Value::Null));
    for field in ["document", "title", "page", "section", "start", "end", "quote", "reference"] {
        assert_eq!(named[field], source[field], "{field}: {citation}");
    }
    assert_eq!(result["citations_removed"], 1);
    assert_eq!(report["metadata"]["citations_removed"], 1);

    let asked = endpoint.asked.lock().unwrap();
    let rerank = asked.chats.iter().find(|(role, ..)| role == "reranker").unwrap();
    assert_eq!(rerank.1, "rerank");
    assert_eq!(rerank.2["response_format"]["json_schema"]["name"], "rerank");
    let answer = asked.chats.iter().find(|(_, stage, _)| stage == "answer").unwrap();
    let prompt = answer.2["messages"].to_string();
    assert!(prompt.contains("<passage number=") && prompt.contains("1,250 crowns"));
    // Read on around the hit: what stands in the neighbouring section came along.
    assert!(prompt.contains("notice of three months"), "{prompt}");
    let qa = asked.chats.iter().find(|(role, ..)| role == "qa").unwrap();
    assert!(Value::to_string(&qa.2).contains("The rent is 1,250 crowns, as is said elsewhere."));
}

/// S3.06: a statement from what was read around the hit is quoted where it stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_citation_quotes_the_paragraph_of_its_statement_and_not_another_one_of_its_passage() {
    let says = |role: &str, stage: &str, body: &Value| match (role, stage) {
        ("agent", "answer") => json!("Who pays late owes a penalty of 5 % [1]."),
        ("supervisor", _) if body["messages"].to_string().contains("owes a penalty of") => {
            let mut done = willing(role, stage, body);
            done["selected_agents"] = json!(["qa"]);
            done
        }
        _ => willing(role, stage, body),
    };
    let endpoint = Endpoint::start(Arc::new(|_| true), Arc::new(says)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let notice = "A notice that ends the lease takes three months. ".repeat(21);
    let text = format!("# Ending\n\n{notice}\n\nWho pays late owes a penalty of 5 %.\n");
    std::fs::write(home.path().join("ending.md"), &text).unwrap();
    home.json(&["documents", "add", "ending.md", "--json"]).await;
    std::fs::write(home.path().join("mcp-servers.toml"), servers(&home, &[])).unwrap();
    let report = home.json(&["run", "How does a notice end the lease?", "--json", "--quiet"]).await;
    let source = &report["results"][0]["sources"][0];
    assert_eq!(source["quote"], "Who pays late owes a penalty of 5 %.", "{report:#}");
    assert_eq!(source["section"], "Ending", "{source}");
    assert_eq!(characters(&text, &source["start"], &source["end"]), source["quote"]);
}

/// S3.02, S3.06: what a task is about narrows the search; where nothing is that narrow, the answer is made from others and
/// its model hears so.
#[tokio::test(flavor = "multi_thread")]
async fn a_tasks_entities_narrow_the_search() {
    let planned = |role: &str, stage: &str, body: &Value| {
        let mut reply = willing(role, stage, body);
        if role == "supervisor" && reply["selected_agents"] == json!(["papers"]) {
            let text = body["messages"].to_string();
            let entity = |name: &str, value: &str| json!({ "name": name, "value": value });
            let format = if text.contains("in a slide") { "pptx" } else { "txt" };
            let mut entities = vec![entity("format", format), entity("party", "Ann Archer")];
            entities.extend(text.contains("compared").then(|| entity("format", "pptx")));
            reply["tasks"] = json!([{
                "id": "t1", "agent": "papers", "task": "find the rent of the lease", "depends_on": [],
                "entities": entities,
            }]);
        }
        reply
    };
    let endpoint = Endpoint::start(Arc::new(|_| true), Arc::new(planned)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let later = "The rent of the lease is 900 crowns a month since May.\n";
    std::fs::write(home.path().join("later.txt"), later).unwrap();
    home.json(&["documents", "add", ".", "--json"]).await;
    std::fs::write(home.path().join("mcp-servers.toml"), servers(&home, &[])).unwrap();
    let prompts = |from: usize| {
        let asked = endpoint.asked.lock().unwrap();
        let answer = asked.chats[from..].iter().rev().find(|(_, stage, _)| stage == "answer");
        let last = answer.unwrap().2["messages"].to_string();
        (asked.chats.len(), last)
    };

    home.json(&["run", "What is the rent?", "--json", "--quiet"]).await;
    let (asked, narrow) = prompts(0);
    assert!(narrow.contains("900 crowns") && !narrow.contains("1,250 crowns"), "{narrow}");
    assert!(narrow.contains("- party: Ann Archer") && !narrow.contains("<search_report>"));

    home.json(&["run", "What is the rent in a slide?", "--json", "--quiet"]).await;
    let (_, wide) = prompts(asked);
    assert!(wide.contains("1,250 crowns") && wide.contains("<search_report>"), "{wide}");
    assert!(wide.contains("nothing was found with format"), "{wide}");

    // Of what there is no call left to search, nothing is known.
    let limits = "[limits]\nmax_tool_calls = 1\n";
    std::fs::write(home.path().join("perihelion.toml"), limits).unwrap();
    let question = "What is the rent, compared with a slide?";
    let report = home.json(&["run", question, "--json", "--quiet"]).await;
    assert_eq!(report["results"][0]["status"], "success", "{report}");
    let (_, one) = prompts(asked);
    assert!(one.contains("900 crowns") && one.contains("not searched: format pptx"), "{one}");
    assert!(!one.contains("nothing was found with"), "{one}");
}
