//! The prompts of one whole run, as they were sent, role by role.

use std::fmt::Write as _;

use perihelion::llm::scripted::{RecordedRequest, Reply};
use perihelion::swarm::Request;
use serde_json::json;

use super::{A, B, Room, assert_done, decide, script, task, verdict};

/// Writes a request down without its system message, which the templates' own tests show.
fn shown(request: &RecordedRequest) -> String {
    let mut text = String::new();
    let names = |tools: &serde_json::Value| {
        let tools = tools.as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["function"]["name"].as_str()).collect::<Vec<_>>().join(", ")
    };
    if let Some(format) = request.body["response_format"]["json_schema"]["name"].as_str() {
        writeln!(text, "(response_format: {format})").unwrap();
    }
    if request.body.get("tools").is_some() {
        writeln!(text, "(tools: {})", names(&request.body["tools"])).unwrap();
    }
    for message in request.body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        let content = match role {
            "system" => "(the template's system part)",
            _ => message["content"].as_str().unwrap_or_default(),
        };
        writeln!(text, "\n--- {role}\n{content}").unwrap();
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let arguments = function["arguments"].as_str().unwrap();
            writeln!(text, "calls {} {arguments}", function["name"].as_str().unwrap()).unwrap();
        }
    }
    text
}

/// S1.04, S1.06, S1.07, S1.08, S1.13
#[tokio::test]
async fn the_prompts_of_a_run() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.agent, asked.tools) {
        ("supervisor", ..) if asked.results == 0 => {
            let tasks = json!([
                task("t1", A, "Find the color.", &[]),
                task("t2", B, "Find the size in that color.", &["t1"])
            ]);
            Some(decide(&["find the color", "find the size", "answer"], &[A, B], tasks))
        }
        ("agent", A, 0) => Some(Reply::call("look_up", json!({ "key": "color" }))),
        ("agent", A, _) if asked.text.contains("</reflection_feedback>") => {
            Some(Reply::text("The color is teal, says look_up."))
        }
        ("agent", A, _) => Some(Reply::text("Teal.")),
        ("reflector", A, _) if !asked.text.contains("says look_up") => {
            Some(verdict("REJECTED", None, Some("Name the source.")))
        }
        ("agent", B, 0) => Some(Reply::call("look_up", json!({ "key": "siz" }))),
        ("agent", B, 1) => Some(Reply::call("look_up", json!({ "key": "size" }))),
        ("agent", B, _) => Some(Reply::text("The size is 42.")),
        _ => None,
    }))
    .await;
    let fixed = [
        ("current_date", "2026-05-04"),
        ("current_date_end_hour", "2026-05-04 23"),
        ("current_date_start_hour", "2026-05-04 00"),
        ("current_datetime_utc", "2026-05-04T10:00:00Z"),
        ("customer", "<Ann & Co>"),
    ];
    let context = fixed.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let question = "Which size is it, in which color?".into();
    let request = Request { question, context, ..Request::default() };
    assert_done(&room.ask_for(request).await.unwrap());

    let requests = room.model.requests();
    let of_role = |role: &str, agent: Option<&str>| -> Vec<String> {
        let of = requests.iter().filter(|one| one.role == role && one.agent.as_deref() == agent);
        of.map(shown).collect()
    };
    let supervisor = of_role("supervisor", None);
    insta::assert_snapshot!("supervisor_at_first", supervisor[0]);
    insta::assert_snapshot!("supervisor_with_results", supervisor[1]);
    insta::assert_snapshot!("agent_after_a_rejection", of_role("agent", Some(A)).pop().unwrap());
    insta::assert_snapshot!("agent_after_a_tool_error", of_role("agent", Some(B)).pop().unwrap());
    insta::assert_snapshot!("reflector", of_role("reflector", Some(B)).pop().unwrap());
    insta::assert_snapshot!("qa", of_role("qa", None).pop().unwrap());
}
