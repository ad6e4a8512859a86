//! What a person sees while documents are added and embedded: a bar on a terminal, lines elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::Home;
use super::endpoint::{Endpoint, willing};

/// Writes a document of several requests for vectors.
fn write_long(home: &Home) {
    let text: String = (0..12)
        .map(|n| {
            format!(
                "## Part {n}\n\nThis is about the thing {n}. {}\n\n",
                "And more of it. ".repeat(70)
            )
        })
        .collect();
    std::fs::write(home.path().join("long.md"), text).unwrap();
}

/// Runs a command on a terminal; returns what was written, and what stands on the screen in the end.
async fn on_a_terminal(home: &Home, arguments: &str) -> (String, String) {
    let program = env!("CARGO_BIN_EXE_perihelion");
    let line = format!("stty rows 40 cols 99; '{program}' {arguments}");
    let own = home.command(&[]);
    let mut command = tokio::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(home.path()).env_clear();
    command.envs(own.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("TERM", "xterm-256color").env("PERIHELION_EMBEDDINGS_BATCH", "2");
    command.stdin(std::process::Stdio::null());
    let output = command.output().await.unwrap();
    let written = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{written}");
    let mut screen = vt100::Parser::new(
        std::num::NonZero::new(40).unwrap(),
        std::num::NonZero::new(99).unwrap(),
        0,
    );
    screen.process(output.stdout.as_slice());
    (written, screen.screen().contents())
}

/// S3.05: on a terminal a bar moves with the steps of a document and is gone when it is there.
#[tokio::test(flavor = "multi_thread")]
async fn adding_moves_a_bar_on_a_terminal_and_leaves_a_list_of_added_documents() {
    let endpoint = Endpoint::willing().await;
    let home = Home::new(Some(endpoint.url.clone()));
    write_long(&home);
    let (written, seen) = on_a_terminal(&home, "documents add long.md").await;
    assert!(written.contains("[1/1] long.md"), "{written:?}");
    assert!(written.contains("storing") || written.contains("embedding"), "{written:?}");
    assert!(seen.contains("added") && seen.contains("chunks, version 1"), "{seen}");
    for passed in ["[1/1]", "embedding", "storing", "█"] {
        assert!(!seen.contains(passed), "{passed} stayed:\n{seen}");
    }
}

/// Returns a home with a long text, the endpoint of its vectors, and a switch: until it is set, requests for vectors fail.
async fn with_failing_embeddings() -> (Home, Endpoint, Arc<AtomicBool>) {
    let works = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&works);
    let on_embeddings = move |_: usize| answers.load(Ordering::SeqCst);
    let endpoint = Endpoint::start(Arc::new(on_embeddings), Arc::new(willing)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    write_long(&home);
    (home, endpoint, works)
}

/// S3.05: what was added without vectors is embedded later, with its progress; all collections have one model, which is said where one is named.
#[tokio::test(flavor = "multi_thread")]
async fn reindexing_embeds_documents_without_vectors_and_reports_progress() {
    let (home, _endpoint, works) = with_failing_embeddings().await;
    let added = home.json(&["documents", "add", "long.md", "--collection", "work", "--json"]).await;
    assert!(added["documents"][0]["by_words_only"].is_string(), "{added}");
    let pieces = added["documents"][0]["chunks"].as_u64().unwrap();

    works.store(true, Ordering::SeqCst);
    let mut command = home.command(&["documents", "reindex", "--collection", "work"]);
    let output = command.env("PERIHELION_EMBEDDINGS_BATCH", "4").output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("all collections share one model"), "{printed}");
    assert!(printed.contains("embedded 4 texts"), "{printed}");
    assert!(printed.contains(&format!("embedded {pieces} texts")), "{printed}");
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output_text, format!("embedded {pieces} texts; searches now use this model\n"));
    let (_, seen) = on_a_terminal(&home, "documents reindex").await;
    assert_eq!(seen.trim(), "embedded 0 texts; searches now use this model");
}

/// An unchanged document without vectors is not taken for a complete one.
#[tokio::test(flavor = "multi_thread")]
async fn adding_an_unchanged_document_embeds_missing_texts_or_reports_the_reason() {
    let (home, endpoint, works) = with_failing_embeddings().await;
    let add = ["documents", "add", "long.md", "--json"];
    for unchanged in [false, true] {
        let added = &home.json(&add).await["documents"][0];
        assert_eq!(added["unchanged"], unchanged, "{added}");
        assert!(added["by_words_only"].is_string(), "{added}");
    }
    works.store(true, Ordering::SeqCst);
    let output = home.command(&add[..3]).output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("unchanged") && printed.contains("missing texts)"), "{printed}");
    let asked = endpoint.asked.lock().unwrap().embeddings.len();
    let added = &home.json(&add).await["documents"][0];
    assert_eq!((&added["embedded"], &added["by_words_only"]), (&0.into(), &Value::Null), "{added}");
    assert_eq!(
        endpoint.asked.lock().unwrap().embeddings.len(),
        asked,
        "the same bytes cost a call"
    );
    let found = home.json(&["documents", "search", "thing", "--json"]).await;
    assert_eq!(found["by_words_only"], Value::Null, "{found}");
}
