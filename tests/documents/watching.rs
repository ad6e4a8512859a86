//! `perihelion documents add --watch`.

use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::endpoint::Endpoint;
use super::{GARDEN, Home, LEASE};

/// A process that follows a folder, and the events that it prints.
struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(home: &Home, more: &[&str]) -> Self {
        let mut arguments = vec!["documents", "add", "papers", "--watch", "--json", "--quiet"];
        arguments.extend(more);
        let mut child = home.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn event(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Returns the next events' names and files, sorted, until one of that name.
    async fn until(&mut self, name: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let event = self.event().await;
            let what = event["event"].as_str().unwrap().to_owned();
            let file = event["path"].as_str().and_then(|path| path.rsplit('/').next());
            seen.push([what.as_str(), file.unwrap_or_default()].join(" ").trim().to_owned());
            if what == name {
                return seen;
            }
        }
    }

    async fn interrupt(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        assert_eq!(self.until("stopped").await, ["stopped"]);
        assert_eq!(self.child.wait().await.unwrap().code(), Some(0));
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

/// S3.05: what is new, changed and gone in a folder is followed; a restart asks no model about what is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_followed_across_restarts_and_the_same_bytes_cost_no_call() {
    let endpoint = Endpoint::willing().await;
    let asked = || {
        let asked = endpoint.asked.lock().unwrap();
        (asked.chats.len(), asked.embeddings.len())
    };
    let home = Home::new(Some(endpoint.url.clone()));
    let papers = home.path().join("papers");
    std::fs::create_dir_all(papers.join("inner")).unwrap();
    write(&papers, "lease.md", LEASE);
    write(&papers, "left.txt", "Of another kind.");

    let mut watching = Watching::start(&home, &["--pattern", "*.md", "--prune"]);
    assert_eq!(watching.until("watching").await, ["added lease.md", "watching"]);
    // New in a folder below, by a move into it, as editors and synchronisers write.
    write(home.path(), "draft.tmp", GARDEN);
    std::fs::rename(home.path().join("draft.tmp"), papers.join("inner/garden.md")).unwrap();
    assert_eq!(watching.until("added").await, ["added garden.md"]);
    write(&papers, "lease.md", &LEASE.replace("4 %", "9 %"));
    let changed = watching.event().await;
    assert_eq!((changed["event"].as_str(), changed["version"].as_u64()), (Some("added"), Some(2)));
    std::fs::remove_file(papers.join("inner/garden.md")).unwrap();
    assert_eq!(watching.until("deleted").await, ["deleted garden.md"]);
    watching.interrupt().await;

    // What happens while nobody looks is seen at the next start.
    let before = asked();
    write(&papers, "garden.md", GARDEN);
    std::fs::remove_file(papers.join("lease.md")).unwrap();
    let mut watching = Watching::start(&home, &["--pattern", "*.md", "--prune"]);
    assert_eq!(
        watching.until("watching").await,
        ["added garden.md", "deleted lease.md", "watching"]
    );
    let after = asked();
    assert_ne!(before, after);
    watching.interrupt().await;

    let mut watching = Watching::start(&home, &["--pattern", "*.md"]);
    assert_eq!(watching.until("watching").await, ["unchanged garden.md", "watching"]);
    assert_eq!(asked(), after, "the same bytes cost no call");
    // Without --prune what is gone stays, and is said to.
    std::fs::remove_file(papers.join("garden.md")).unwrap();
    assert_eq!(watching.until("gone").await, ["gone garden.md"]);
    watching.interrupt().await;
    let listed = home.json(&["documents", "list", "--json"]).await;
    assert_eq!(listed[0]["title"], "Garden notes");
}

/// A folder that vanishes as a whole, such as a disk that was taken out, deletes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_folder_deletes_no_document() {
    let home = Home::new(None);
    let papers = home.path().join("papers");
    std::fs::create_dir(&papers).unwrap();
    write(&papers, "lease.md", LEASE);
    let mut watching = Watching::start(&home, &["--prune"]);
    watching.until("watching").await;
    std::fs::remove_dir_all(&papers).unwrap();
    std::fs::create_dir(&papers).unwrap();
    write(&papers, "lease.md", LEASE);
    watching.interrupt().await;
    std::fs::remove_dir_all(&papers).unwrap();
    let output = home.run(&["documents", "add", "papers", "--watch", "--prune"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("papers"));
    assert_eq!(home.json(&["documents", "list", "--json"]).await.as_array().unwrap().len(), 1);
}
