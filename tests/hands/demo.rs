//! The demo of hands, as people start it.

use perihelion::llm::scripted::Script;
use serde_json::json;

use crate::agents::{Star, has_python};

/// S2.04, S2.06, S2.07, S3.01: in one thread an analyst counts, a program computes on its table, and an API is asked about the outcome.
#[tokio::test]
async fn the_demo_of_hands_counts_computes_and_asks_an_api() {
    if !has_python() {
        return;
    }
    let star = Star::open("unused", "enabled = false", Script::new()).await;
    let report = star.run(&["demo", "--hands", "--json", "--quiet"]).await;
    assert_eq!(report["status"], "done", "{report:#}");
    let results = report["results"].as_array().unwrap();
    let agents: Vec<&str> = results.iter().map(|one| one["agent"].as_str().unwrap()).collect();
    assert_eq!(agents, ["mcp_agent_timezones", "mcp_agent_maths", "mcp_agent_atlas"]);
    let [counted, computed, asked] = results.as_slice() else { panic!("{results:#?}") };
    let counts: Vec<i64> = counted["tabular"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[2].as_i64().unwrap())
        .collect();
    assert_eq!(counts.len(), 10, "{counted:#}");
    let first = counts[0];
    let share =
        |part: i64| (1_000.0 * part as f64 / counts.iter().sum::<i64>() as f64).round() / 10.0;
    assert_eq!(computed["tabular"]["rows"][0][2], json!(share(first)), "{computed:#}");
    assert_eq!(asked["tabular"]["row_count"], json!(first), "{asked:#}");
    assert!(asked["tabular"]["columns"].as_array().unwrap().contains(&json!("latitude")));
    let answer = report["answer"].as_str().unwrap();
    for part in ["[1]", "[2]", "[3]", &format!("{} %", share(counts[..3].iter().sum()))] {
        assert!(answer.contains(part), "{part} is not in: {answer}");
    }
    let thread = report["thread_id"].as_str().unwrap();
    let replayed = star.perihelion(&["replay", thread]).await;
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
}
