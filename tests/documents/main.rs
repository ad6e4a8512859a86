//! Documents as their users meet them: the bundled server, the command line, and the agent; killed and resumed.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

mod agent;
mod asking;
mod command_line;
mod deleting;
mod demo;
mod docling;
mod endpoint;
mod external;
mod killed;
mod progress;
mod safety;
mod scans;
mod server;
mod watching;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

/// Two documents with something to find in each.
const LEASE: &str = "# Lease\n\nThis lease is made between Ann Archer and the Brook Company.\n\n## Rent\n\nThe rent is 1,250 crowns a \
     month, due on the first day. A late payment bears interest of 4 %.\n\n## Termination\n\nEither party may end the lease \
     with notice of three months, in writing.\n";
const GARDEN: &str = "# Garden notes\n\nTomatoes want six hours of sun.\n\n## Watering\n\nGrößere Töpfe alle zwei Tage.\n";

/// A directory with a database, and the program that works in it.
struct Home {
    directory: tempfile::TempDir,
    model_url: Option<String>,
}

impl Home {
    fn new(model_url: Option<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("lease.md"), LEASE).unwrap();
        std::fs::write(directory.path().join("garden.md"), GARDEN).unwrap();
        Self { directory, model_url }
    }

    /// Returns the files of the directory in which a word stands: the database's, its log's and whatever else there is.
    fn waiting(&self, word: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        let contains = |path: &PathBuf| {
            let is_file = path.is_file();
            is_file
                && std::fs::read(path)
                    .unwrap()
                    .windows(word.len())
                    .any(|part| part == word.as_bytes())
        };
        entries.filter(contains).collect()
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn database(&self) -> String {
        format!("sqlite:{}", self.path().join("threads.db").display())
    }

    fn command(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_perihelion"));
        command.args(arguments).current_dir(self.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path()).env("DATABASE_URL", self.database());
        if let Some(url) = &self.model_url {
            command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", "k");
            command.env("PERIHELION_EMBEDDINGS_MODEL", "letters");
            command.env("PERIHELION_MODELS_MAX_RETRIES", "0");
            command.env("PERIHELION_MODELS_PROTOCOL", "full");
        }
        command.kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().await.unwrap()
    }

    /// Runs a command that must succeed and print JSON.
    async fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Returns characters of a text, as a client counts them.
fn characters(text: &str, start: &Value, end: &Value) -> String {
    let start = start.as_u64().unwrap() as usize;
    let end = end.as_u64().unwrap() as usize;
    text.chars().skip(start).take(end - start).collect()
}
