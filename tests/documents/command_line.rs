//! `perihelion documents …`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::endpoint::{Endpoint, willing};
use super::{Home, LEASE, characters};

/// S3.05, S3.06: without a model documents are found by words.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_added_listed_searched_shown_and_deleted() {
    let home = Home::new(None);
    let added = home.json(&["documents", "add", ".", "--collection", "home", "--json"]).await;
    assert_eq!(added["failed"], 0, "{added}");
    let listed = home.json(&["documents", "list", "--collection", "home", "--json"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let elsewhere = home.json(&["documents", "list", "--collection", "work", "--json"]).await;
    assert!(elsewhere.as_array().unwrap().is_empty());

    let found = home
        .json(&["documents", "search", "late payment interest", "--collection", "home", "--json"])
        .await;
    let hit = &found["hits"][0];
    assert_eq!(hit["section"], "Lease › Rent");
    assert_eq!(characters(LEASE, &hit["start"], &hit["end"]), hit["quote"]);

    let exported = home.run(&["documents", "export", "--collection", "home"]).await;
    let lines = String::from_utf8(exported.stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().any(|one| one["text"] == LEASE && one["document"]["title"] == "Lease"));

    let id = hit["document"].as_str().unwrap();
    for path in ["lease.md", "./lease.md"] {
        let shown = home.json(&["documents", "show", path, "--json"]).await;
        assert_eq!(shown["document"]["id"], id, "as it was added");
        let only = ["documents", "search", "rent", "--document", path, "--limit", "0", "--json"];
        assert_eq!(home.json(&only).await["hits"][0]["document"], id);
    }
    let gone = home.json(&["documents", "delete", "garden.md", "--json"]).await;
    assert_eq!(gone["title"], "Garden notes");
    home.json(&["documents", "add", "garden.md", "--collection", "home", "--json"]).await;
    let shown = home.json(&["documents", "show", &id[..10], "--json"]).await;
    assert_eq!(shown["read"]["text"], LEASE);
    let again =
        home.json(&["documents", "add", "lease.md", "--collection", "home", "--json"]).await;
    assert_eq!(again["documents"][0]["unchanged"], true);
    let read = home
        .json(&["documents", "add", "lease.md", "--collection", "home", "--again", "--json"])
        .await;
    let read = &read["documents"][0];
    assert_eq!((&read["unchanged"], &read["document"]), (&false.into(), &id.into()), "{read}");
    let mixed = ["documents", "add", "gone.md", "lease.md", "--collection", "home", "--again"];
    let output = home.run(&[&mixed[..], &["--json"]].concat()).await;
    assert_eq!(output.status.code(), Some(1), "a missing file leaves the others alone");
    let mixed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&mixed["failed"], &mixed["documents"][1]["document"]), (&1.into(), &id.into()));
    let once = home.json(&["documents", "add", "lease.md", "--collection", "home", "--json"]).await;
    assert_eq!(once["documents"][0]["unchanged"], true);

    std::fs::write(home.path().join("questions.jsonl"), "{\"question\": \"interest on late payment\", \"quote\": \"4 %\"}\n{\"question\": \"sun for tomatoes\", \"document\": \"garden.md\"}\n").unwrap();
    let measured = home.json(&["documents", "evaluate", "questions.jsonl", "--json"]).await;
    assert_eq!(measured["recall_at_10"], 1.0);

    let output = home.run(&["documents", "delete", &id[..5]]).await;
    assert_eq!(output.status.code(), Some(1), "so few letters name a document by chance");
    home.json(&["documents", "delete", id, "--json"]).await;
    let output = home.run(&["documents", "show", id]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such document"));
}

/// S3.05: a list says what is used of what is permitted.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_shows_usage_and_quota() {
    let home = Home::new(None);
    let run = async |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PERIHELION_DOCUMENTS_MAX_DOCUMENTS", "1").output().await.unwrap()
    };
    assert!(run(&["documents", "add", "lease.md"]).await.status.success());
    let refused = run(&["documents", "add", "garden.md"]).await;
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(printed.contains("the quota of documents is exceeded: 1 used"), "{printed}");
    let listed = run(&["documents", "list"]).await;
    let printed = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(printed.contains("used: 1 of 1 documents"), "{printed}");
}

/// S3.05: what was not changed for long is deleted by a command, as the option or the settings say.
#[tokio::test(flavor = "multi_thread")]
async fn old_documents_are_pruned_when_an_age_is_given() {
    let home = Home::new(None);
    home.json(&["documents", "add", "lease.md", "--json"]).await;
    home.json(&["documents", "add", "garden.md", "--collection", "garden", "--json"]).await;
    let output = home.run(&["documents", "prune"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("max_age under [documents]"));
    let old = home.json(&["documents", "prune", "--older-than", "1d", "--json"]).await;
    assert_eq!(old["deleted"], serde_json::json!([]));
    let would =
        home.json(&["documents", "prune", "--older-than", "0s", "--dry-run", "--json"]).await;
    assert_eq!(would["deleted"].as_array().unwrap().len(), 2);
    let pruned = ["documents", "prune", "--collection", "garden", "--json"];
    let mut command = home.command(&pruned);
    let output = command.env("PERIHELION_DOCUMENTS_MAX_AGE", "0s").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = home.json(&["documents", "list", "--json"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["title"], "Lease");
    let threads = home.json(&["threads", "list", "--json"]).await.to_string();
    assert!(!threads.contains("garden.md"), "{threads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_a_long_title_is_unchanged_when_it_is_added_again() {
    let home = Home::new(None);
    let title = "A long title ".repeat(30);
    for unchanged in [false, true] {
        let added = home.json(&["documents", "add", "lease.md", "--title", &title, "--json"]).await;
        assert_eq!(added["documents"][0]["unchanged"], unchanged, "{added}");
    }
}

/// One document that cannot be read fails by name; the others are there.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_document_is_named_and_the_rest_are_added() {
    let home = Home::new(None);
    std::fs::write(home.path().join("broken.docx"), b"PK\x03\x04 rubbish").unwrap();
    let output = home.run(&["documents", "add", ".", "--json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("broken.docx") && printed.contains("damaged"), "{printed}");
    let listed = home.json(&["documents", "list", "--json"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

/// S3.05, X1: killed while it embeds, the same command continues; no text is paid for twice but those under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_upload_continues_and_pays_for_no_call_twice() {
    let child = Arc::new(AtomicI32::new(0));
    let victim = Arc::clone(&child);
    let on_embeddings = move |number: usize| {
        if number == 2 {
            let pid = victim.swap(0, Ordering::SeqCst);
            if pid != 0 {
                kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
            }
        }
        true
    };
    let endpoint = Endpoint::start(Arc::new(on_embeddings), Arc::new(willing)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let text: String = (0..400)
        .map(|n| format!("## Part {n}\n\nThis is about the thing {n}, at length.\n\n"))
        .collect();
    std::fs::write(home.path().join("long.md"), &text).unwrap();

    let mut process = home.command(&["documents", "add", "long.md"]).spawn().unwrap();
    child.store(i32::try_from(process.id().unwrap()).unwrap(), Ordering::SeqCst);
    assert!(!process.wait().await.unwrap().success());
    let found = home.json(&["documents", "search", "thing 7", "--json"]).await;
    assert!(found["hits"].as_array().unwrap().is_empty(), "not before it is whole");

    let under_way = {
        let mut asked = endpoint.asked.lock().unwrap();
        // The last question was the search's.
        asked.embeddings.pop();
        asked.embeddings[2].clone()
    };
    let added = home.json(&["documents", "add", "long.md", "--json"]).await;
    assert_eq!(added["documents"][0]["unchanged"], false);
    let asked = endpoint.asked.lock().unwrap();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for text in asked.embeddings.iter().flatten() {
        *times.entry(text).or_insert(0) += 1;
    }
    let twice: Vec<_> = times
        .iter()
        .filter(|(text, times)| **times > 1 && !under_way.iter().any(|one| one == *text))
        .collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(times.len() as u64, added["documents"][0]["chunks"].as_u64().unwrap());
    let described = asked.chats.iter().filter(|(role, ..)| role == "summarizer").count();
    assert_eq!(described, 1);
}

/// A request for a description goes out with its role, stage and schema; the description is shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_described_by_the_summarizer_and_embedded() {
    let endpoint = Endpoint::willing().await;
    let home = Home::new(Some(endpoint.url.clone()));
    let added = home.json(&["documents", "add", "lease.md", "--json"]).await;
    assert_eq!(added["documents"][0]["by_words_only"], serde_json::Value::Null);
    assert_eq!(added["documents"][0]["embedded"], added["documents"][0]["chunks"]);
    let listed = home.json(&["documents", "list", "--json"]).await;
    assert_eq!(listed[0]["description"]["type"], "paper");
    let asked = endpoint.asked.lock().unwrap();
    let (role, stage, body) = &asked.chats[0];
    assert_eq!((role.as_str(), stage.as_str()), ("summarizer", "describe"));
    assert_eq!(body["response_format"]["json_schema"]["name"], "document_description");
}

/// An endpoint without embeddings leaves documents that are found by words, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn without_embeddings_a_document_is_found_by_words() {
    let endpoint = Endpoint::start(Arc::new(|_| false), Arc::new(willing)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let added = home.json(&["documents", "add", "lease.md", "--json"]).await;
    assert!(added["documents"][0]["by_words_only"].as_str().unwrap().contains("404"));
    let found = home.json(&["documents", "search", "rent", "--json"]).await;
    assert!(!found["hits"].as_array().unwrap().is_empty());
    assert!(found["by_words_only"].as_str().unwrap().contains("404"), "{found}");
    // Nothing listens there.
    let mut search = home.command(&["documents", "search", "rent"]);
    let output = search.env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").output().await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.contains("used keyword search only"), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1,250 crowns"));
}

/// S3.05: a deleted document is in no file, its thread's among them.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_document_leaves_no_byte_in_any_file() {
    let endpoint = Endpoint::willing().await;
    let home = Home::new(Some(endpoint.url.clone()));
    let canary = "xylophonequartzwombat";
    let path = home.path().join("secret.md");
    std::fs::write(&path, format!("# Secret\n\nThe word is {canary}.\n")).unwrap();
    let added = home.json(&["documents", "add", "secret.md", "--json"]).await;
    std::fs::remove_file(&path).unwrap();
    assert!(!home.waiting(canary).is_empty());
    let id = added["documents"][0]["document"].as_str().unwrap();
    home.json(&["documents", "delete", id, "--json"]).await;
    let files = home.waiting(canary);
    assert!(files.is_empty(), "{files:?}");
}
