//! A backend's process: started on free ports, ended with all that it started.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use perihelion::clock;
use serde_json::Value;
use tempfile::TempDir;

/// How long a server may take until it answers; the first start after an installation compiles everything.
const PATIENCE: Duration = Duration::from_secs(300);

pub struct Server {
    process: Child,
    log: PathBuf,
    client: reqwest::Client,
    /// Its base address.
    pub url: String,
    /// Its files.
    _home: TempDir,
}

/// Returns a port that was free a moment ago.
pub fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Makes the command for a program, tied to this process where the system can do that.
pub fn command(program: &Path) -> Command {
    let tie = Path::new("/usr/bin/setpriv");
    if !tie.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(tie);
    command.args(["--pdeathsig", "TERM", "--"]).arg(program);
    command
}

impl Server {
    /// Starts a program in a home of its own, which it knows as its working directory, and waits until `ready` answers.
    pub async fn start(mut command: Command, home: TempDir, port: u16, ready: &str) -> Self {
        // Nothing here is encrypted, but no client is made without a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::new();
        let log = home.path().join("server.log");
        let output = File::create(&log).unwrap();
        command
            .current_dir(home.path())
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            // It starts processes of its own, which are to end with it.
            .process_group(0);
        let process = command.spawn().unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let mut server = Self { process, log, client, url, _home: home };
        let until = clock::now() + PATIENCE;
        while !server.answers(ready).await {
            let ended = server.process.try_wait().unwrap();
            assert!(ended.is_none(), "{command:?} ended: {ended:?}\n{}", server.output());
            assert!(clock::now() < until, "{command:?} does not answer\n{}", server.output());
            clock::sleep(Duration::from_millis(200)).await;
        }
        server
    }

    async fn answers(&self, path: &str) -> bool {
        let answer = self.client.get(format!("{}{path}", self.url)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Returns the end of its log.
    pub fn output(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.client.get(format!("{}{path}", self.url)).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status}: {text}\n{}", self.output());
        serde_json::from_str(&text).unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.url)).json(body);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status}: {text}\n{}", self.output());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.process.id()).unwrap());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.process.wait();
    }
}
