//! Documents that another program reads.

#[path = "../../crates/parse/tests/support/pdf.rs"]
pub(crate) mod written;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};

use super::Home;

/// A home with a scan, and a program of a few lines that reads it.
fn home(program: &str) -> Home {
    let home = Home::new(None);
    std::fs::write(home.path().join("scan of May.pdf"), written::pdf(&[""])).unwrap();
    let path = home.path().join("read.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{program}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    home
}

/// A page that no piece of a document reaches beyond.
pub(crate) fn long_page() -> String {
    (0..2_000).map(|number| format!("Clause {number} stands.")).collect::<Vec<_>>().join("\n\n")
}

async fn add(home: &Home, file: &str, more: &[(&str, &str)]) -> Output {
    let program = home.path().join("read.sh");
    let mut command = home.command(&["documents", "add", file, "--json"]);
    command.env("PERIHELION_DOCUMENTS_PARSER", program).env("SECRET", "hidden");
    command.envs(more.iter().copied()).output().await.unwrap()
}

/// Returns what is said of a document that cannot be added; nothing of it is kept.
async fn refused(home: &Home, more: &[(&str, &str)]) -> String {
    let output = add(home, "scan of May.pdf", more).await;
    assert_eq!(output.status.code(), Some(1));
    let listed = home.json(&["documents", "list", "--json"]).await;
    assert_eq!(listed, json!([]));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// S3.05: a scan that was refused is read by the program that the settings name, and is found by what that wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_read_by_the_program_that_the_settings_name() {
    let home = home(
        "printf '# Scanned\\n\\nThe words: xylophone %s %s bytes%s.\\n' \"$1\" \"$(wc -c)\" \"$SECRET\"",
    );
    let output = home.run(&["documents", "add", "scan of May.pdf"]).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("a scan"), "{output:?}");
    let output = add(&home, "scan of May.pdf", &[]).await;
    assert!(output.status.success(), "{output:?}");
    let added: Value = serde_json::from_slice(&output.stdout).unwrap();
    let added = &added["documents"][0];
    assert_eq!((&added["format"], &added["title"]), (&json!("pdf"), &json!("Scanned")));
    let warning = added["warnings"][0].as_str().unwrap();
    assert!(warning.contains("another program") && warning.contains("read.sh"), "{warning}");
    let found = home.json(&["documents", "search", "xylophone", "--json"]).await;
    let quote = found["hits"][0]["quote"].as_str().unwrap();
    let size = written::pdf(&[""]).len();
    let words = format!("xylophone scan_of_May.pdf {size} bytes.");
    assert!(quote.contains(&words), "{quote}");
}

/// S3.05: a program that knows of pages ends each with a form feed, and what is found names its page.
#[tokio::test(flavor = "multi_thread")]
async fn pages_that_the_program_ends_are_cited() {
    let home = home("cat first.txt; printf '\\f# Two\\n\\nThe xylophone.\\n\\f'");
    std::fs::write(home.path().join("first.txt"), long_page()).unwrap();
    let output = add(&home, "scan of May.pdf", &[]).await;
    assert!(output.status.success(), "{output:?}");
    let found = home.json(&["documents", "search", "xylophone", "--json"]).await;
    assert_eq!(found["hits"][0]["page"], 2, "{found}");
}

/// What our parser reads it still reads, but for the endings that are named.
#[tokio::test(flavor = "multi_thread")]
async fn the_external_program_parses_the_listed_endings_and_our_parser_the_rest() {
    let home = home("tr a-z A-Z");
    let title = async |file: &str, endings: &str| {
        let output = add(&home, file, &[("PERIHELION_DOCUMENTS_PARSER_FOR", endings)]).await;
        let added: Value = serde_json::from_slice(&output.stdout).unwrap();
        added["documents"][0]["title"].as_str().unwrap().to_owned()
    };
    assert_eq!(title("lease.md", "pdf, docx").await, "Lease");
    assert_eq!(title("garden.md", "pdf, MD").await, "GARDEN NOTES");
    // Of a directory, too, files count that only that program reads.
    std::fs::create_dir(home.path().join("odd")).unwrap();
    std::fs::write(home.path().join("odd/plan.cad"), "# Plan\n\nA wall.\n").unwrap();
    assert_eq!(title("odd", "cad").await, "PLAN");
}

/// S3.05: Its failures are named, and none leaves a document or a process.
#[tokio::test(flavor = "multi_thread")]
async fn failures_of_the_external_program_are_named() {
    let failing = home("echo 'no model is there' >&2; exit 3");
    let words = refused(&failing, &[]).await;
    for part in ["documents.parser", "read.sh", "scan of May.pdf", "exit status: 3: no model"] {
        assert!(words.contains(part), "{words}");
    }
    let words = refused(&failing, &[("PERIHELION_DOCUMENTS_PARSER", "/nowhere/x")]).await;
    assert!(words.contains("it cannot be started"), "{words}");
    let words = refused(&home("cat > /dev/null"), &[]).await;
    assert!(words.contains("its output cannot be read: the document is empty"), "{words}");
    let words = refused(&home("yes"), &[]).await;
    assert!(words.contains("it writes more than"), "{words}");

    let slow = home("sleep 3600 & echo $! > \"$HOME/stray\"; wait");
    let words = refused(&slow, &[("PERIHELION_DOCUMENTS_PARSER_TIMEOUT_SEC", "0.5")]).await;
    assert!(words.contains("it is not done within 0.5 s"), "{words}");
    let stray = std::fs::read_to_string(slow.path().join("stray")).unwrap();
    // Dead, or waiting for nothing but that somebody reads its status.
    let state = format!("/proc/{}/stat", stray.trim());
    for _ in 0..5_000 {
        match std::fs::read_to_string(&state) {
            Ok(text) if !text.contains(") Z") => {
                perihelion::clock::sleep(Duration::from_millis(10)).await;
            }
            _ => return,
        }
    }
    panic!("it still runs: {stray}");
}
