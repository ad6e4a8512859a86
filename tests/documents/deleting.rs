//! Documents are deleted with all that there is of them, however far they were.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::Home;
use super::endpoint::{Endpoint, willing};
use super::server::{data, start};

const CANARY: &str = "xylophonequartzwombat";

/// S3.05: killed while it embeds, an adding that nobody continues is deleted by its path, and no file holds a byte of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_adding_is_deleted_by_its_path_and_leaves_no_byte() {
    let child = Arc::new(AtomicI32::new(0));
    let victim = Arc::clone(&child);
    let on_embeddings = move |number: usize| {
        if number == 1 {
            let pid = victim.swap(0, Ordering::SeqCst);
            if pid != 0 {
                kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
            }
        }
        true
    };
    let endpoint = Endpoint::start(Arc::new(on_embeddings), Arc::new(willing)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let part =
        |n: usize| format!("## Part {n} {CANARY}\n\nThis is about the thing {n}, at length.\n\n");
    let path = home.path().join("secret.md");
    std::fs::write(&path, (0..300).map(part).collect::<String>()).unwrap();
    let name = std::fs::canonicalize(&path).unwrap().to_str().unwrap().to_owned();

    let mut process = home.command(&["documents", "add", "secret.md"]).spawn().unwrap();
    child.store(i32::try_from(process.id().unwrap()).unwrap(), Ordering::SeqCst);
    assert!(!process.wait().await.unwrap().success());
    std::fs::remove_file(&path).unwrap();
    let threads = async || home.json(&["threads", "list", "--json"]).await.to_string();
    assert!(threads().await.contains("secret.md"));

    let would = ["documents", "prune", "--older-than", "0s", "--dry-run", "--json"];
    let would = home.json(&would).await;
    assert_eq!(would["deleted"].as_array().unwrap().len(), 1, "{would}");
    let deleted = home.json(&["documents", "delete", "secret.md", "--json"]).await;
    assert_eq!(deleted["title"], name.as_str());
    assert!(!threads().await.contains("secret.md"));
    let files = home.waiting(CANARY);
    assert!(files.is_empty(), "{files:?}");
}

/// S3.05: the threads of every version and of what could not be read are deleted, by the command line and over MCP.
#[tokio::test(flavor = "multi_thread")]
async fn the_threads_of_all_versions_and_of_failed_addings_go_with_their_document() {
    let home = Home::new(None);
    let threads = async || home.json(&["threads", "list", "--json"]).await.to_string();
    let name = |file: &str| {
        let path = std::fs::canonicalize(home.path().join(file)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let add_versions = async || {
        for version in ["one", "two"] {
            let text = format!("# Secret\n\nA word: {version}.\n");
            std::fs::write(home.path().join("secret.md"), text).unwrap();
            home.json(&["documents", "add", "secret.md", "--json"]).await;
        }
        assert!(threads().await.matches("secret.md").count() >= 2);
    };
    add_versions().await;
    home.json(&["documents", "delete", &name("secret.md"), "--json"]).await;
    assert!(!threads().await.contains("secret.md"));

    std::fs::write(home.path().join("broken.pdf"), "%PDF-1.7\nrubbish").unwrap();
    let refused = home.run(&["documents", "add", "broken.pdf"]).await;
    assert!(!refused.status.success());
    assert!(threads().await.contains("broken.pdf"));
    home.json(&["documents", "delete", &name("broken.pdf"), "--json"]).await;
    assert!(!threads().await.contains("broken.pdf"));

    add_versions().await;
    let client = start(&home, &[]).await;
    let listed = data(&client, "list_documents", json!({})).await;
    let id = &listed["documents"][0]["document"];
    let gone = data(&client, "delete_document", json!({ "document": id })).await;
    assert_eq!(gone["title"], "Secret");
    client.cancel().await.unwrap();
    assert!(!threads().await.contains("secret.md"));
}
