//! `perihelion mcp python`.

use std::process::Command;

use serde_json::{Value, json};

use crate::client::{Client, start};

/// Starts the server; where neither the bundled Python nor bubblewrap is to be had, which in CI must be, checks that it refuses and returns nothing.
async fn server() -> Option<Client> {
    if cfg!(feature = "python-wasm") || which("bwrap") {
        return Some(start(&["python", "--timeout-sec", "5"], &[]).await);
    }
    assert!(std::env::var_os("CI").is_none(), "install bubblewrap: Python runs under it");
    eprintln!("only the refusal was tested: there is no bubblewrap");
    let refused =
        Command::new(env!("CARGO_BIN_EXE_perihelion")).args(["mcp", "python"]).output().unwrap();
    assert!(!refused.status.success());
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(printed.contains("bubblewrap"), "{printed}");
    None
}

fn which(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// S2.07: a program's output, result, variables, table and files come back as data.
#[tokio::test]
async fn a_program_runs_over_mcp_with_its_inputs_and_leaves_data() {
    let Some(client) = server().await else { return };
    let code = "total = sum(prices)\nprint('total', total)\ntable = [{'price': p, 'share': p / total} for p in prices]\n\
                with open('note.txt', 'w') as f: f.write('done')\ntotal";
    let data = client.data("run_python", json!({"code": code, "inputs": {"prices": [1, 3]}})).await;
    assert_eq!(data["stdout"], "total 4\n");
    assert_eq!(data["result"], 4);
    assert_eq!(data["locals"]["total"], 4);
    assert_eq!(data["table"]["columns"], json!(["price", "share"]));
    assert_eq!(data["table"]["rows"], json!([[1, 0.25], [3, 0.75]]));
    assert_eq!(
        (&data["files"][0]["path"], &data["files"][0]["text"]),
        (&json!("note.txt"), &json!("done"))
    );
    assert_eq!(data["error"], Value::Null);
    client.stop().await;
}

/// S2.07, S2.11: what goes wrong is a result with a typed error and a line, and the next run starts from nothing.
#[tokio::test]
async fn failures_of_a_program_are_typed_results_and_runs_share_no_state() {
    let Some(client) = server().await else { return };
    for (code, kind, line) in [
        ("x = 1\nx / 0", "PythonError", json!(2)),
        ("import os\nos.system('id')", "SandboxViolation", json!(2)),
        ("open('/etc/shadow')", "SandboxViolation", json!(1)),
    ] {
        let data = client.data("run_python", json!({"code": code})).await;
        assert_eq!(
            (&data["error"]["type"], &data["error"]["line"]),
            (&json!(kind), &line),
            "{code}: {data}"
        );
    }
    let data =
        client.data("run_python", json!({"code": "while True: pass", "timeout_sec": 0.3})).await;
    assert_eq!(data["error"]["type"], "Timeout");
    let data = client.data("run_python", json!({"code": "x"})).await;
    assert_eq!(data["error"]["message"], "NameError: name 'x' is not defined");
    let refused = client.failure("run_python", json!({"code": "1", "timeout_sec": -1})).await;
    assert!(refused.contains("timeout"), "{refused}");
    client.stop().await;
}

/// A run whose clock and seed are given is repeated byte for byte; only the bundled Python is.
#[cfg(feature = "python-wasm")]
#[tokio::test]
async fn a_run_is_repeated_byte_for_byte_from_the_clock_and_seed_of_its_result() {
    use serde_json::Map;

    let Some(client) = server().await else { return };
    let code = json!({"code": "import random, time\n[random.random(), time.time()]"});
    let first = client.call("run_python", code.clone()).await;
    let meta: Map<String, Value> =
        serde_json::to_value(first.meta.clone().unwrap()).unwrap().as_object().unwrap().clone();
    let again = client.call_with("run_python", code, meta).await;
    assert_eq!(first.structured_content, again.structured_content);
    client.stop().await;
}
