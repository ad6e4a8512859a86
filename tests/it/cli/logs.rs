//! Log lines, and where in a trace they belong.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::Value;

use super::world::{World, first, reading};

/// S1.12: a person pastes the trace id of a line into any viewer.
#[tokio::test]
async fn each_json_line_of_a_run_names_the_trace_and_the_span_that_the_viewers_have() {
    let refused = Rule::new(Reply::status(503, "busy")).role(Role::Agent).nth(1);
    let mut world = World::new(first(refused, reading())).await;
    world.set("PERIHELION_LOG_FORMAT", "json");
    world.set("PERIHELION_LOG", "perihelion=debug,info");
    world.set("PERIHELION_MODELS_MAX_RETRIES", "1");
    let run = world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let trace = world.run(&["trace", "t", "--json"]).await.code(0).json();
    let lines: Vec<Value> =
        run.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let again = "asking the model again";
    let warned = lines.iter().find(|line| line["fields"]["message"] == again).unwrap();
    assert_eq!(warned["trace_id"], trace["trace_id"]);
    assert_eq!((&warned["thread"], &warned["run"]), (&trace["thread_id"], &Value::from(1)));
    let spans = trace["spans"].as_array().unwrap();
    let agent = spans.iter().find(|span| span["name"] == "invoke_agent mcp_agent_files").unwrap();
    assert_eq!(warned["span_id"], agent["span_id"], "it was the agent that asked");
    for line in lines.iter().filter(|line| !line["trace_id"].is_null()) {
        assert_eq!(line["trace_id"], trace["trace_id"]);
        assert!(spans.iter().any(|span| span["span_id"] == line["span_id"]), "{line}");
    }

    // A resume of what was finished is a run, and a trace, of its own.
    world.set("PERIHELION_LOG_FORMAT", "text");
    let plain = world.run(&["run", "And now?", "--thread", "t", "-q"]).await.code(0);
    assert!(!plain.stderr.contains("trace_id"), "{plain:?}");
}
