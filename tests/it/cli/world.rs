//! A user's machine in a temporary directory: home, settings, servers, and a scripted model.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel, ScriptedServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The API key of every test; it must show nowhere.
pub const KEY: &str = "sk-canary-0123456789";

/// The bundled servers, as a servers file has them.
pub const SERVERS: &str = r#"
[mcp_servers.files]
command = "perihelion"
args = ["mcp", "files", "--root", "documents"]
default_tools_effect = "read_only"

[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
"#;

pub struct World {
    pub home: TempDir,
    pub model: ScriptedServer,
    env: Vec<(String, String)>,
}

/// How a process ended and what it said.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Checks the exit code and returns this.
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        for printed in [&self.stdout, &self.stderr] {
            assert!(!printed.contains(KEY), "the key shows: {self:#?}");
        }
        self
    }

    /// Reads standard output as the one JSON value that it is.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Checks that something was said on standard error.
    pub fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "missing: {words}\n{self:#?}");
        self
    }
}

impl World {
    /// Makes a machine with the bundled servers and a model that follows a script.
    pub async fn new(script: Script) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("documents")).unwrap();
        std::fs::write(home.path().join("documents/a.txt"), "The answer is 42.\n").unwrap();
        std::fs::write(home.path().join("mcp-servers.toml"), SERVERS).unwrap();
        let model = ScriptedModel::start(script).await.unwrap();
        let env = vec![
            ("OPENAI_BASE_URL".to_owned(), model.url().to_owned()),
            ("OPENAI_API_KEY".to_owned(), KEY.to_owned()),
            ("OPENAI_MODEL".to_owned(), "scripted".to_owned()),
            ("PERIHELION_MODELS_MAX_RETRIES".to_owned(), "0".to_owned()),
            // The scripts plan, also where there is one agent.
            ("PERIHELION_MODELS_PROTOCOL".to_owned(), "full".to_owned()),
        ];
        Self { home, model, env }
    }

    /// Sets a variable of the environment of what is started from now on; an empty one counts as unset.
    pub fn set(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_perihelion"), args)
    }

    /// Runs the program on a terminal of 40 rows and 79 columns, where somebody types; both streams come as one.
    pub async fn run_on_a_terminal(&self, args: &[&str], typed: &str) -> Ended {
        let line: Vec<String> = [env!("CARGO_BIN_EXE_perihelion")]
            .iter()
            .chain(args)
            .map(|word| format!("'{word}'"))
            .collect();
        let path = self.path("typed");
        std::fs::write(&path, typed).unwrap();
        let line = format!("stty rows 40 cols 79; {}", line.join(" "));
        let mut command = self.program("script", &["-qec", &line, "/dev/null"]);
        command.stdin(std::fs::File::open(path).unwrap()).env("TERM", "xterm-256color");
        ended(command.spawn().unwrap()).await
    }

    fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("XDG_DATA_HOME", self.home.path().join("data"))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Starts the program.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Runs the program to its end.
    pub async fn run(&self, args: &[&str]) -> Ended {
        ended(self.start(args)).await
    }

    /// Runs the program with a small stack of its main thread, as some shells and containers have it.
    pub async fn run_with_a_small_stack(&self, args: &[&str]) -> Ended {
        let small = r#"ulimit -s 1024 && exec "$0" "$@""#;
        let line = ["-c", small, env!("CARGO_BIN_EXE_perihelion")];
        let line: Vec<&str> = line.iter().chain(args).copied().collect();
        ended(self.program("sh", &line).spawn().unwrap()).await
    }

    /// Runs the program where every file can be read and none written.
    pub async fn run_read_only(&self, args: &[&str]) -> Ended {
        let plain = self.command(args);
        let plain = plain.as_std();
        let mut command = Command::new("bwrap");
        command
            .args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"])
            // Where the temporary files of a test run may lie.
            .args(["--ro-bind-try", "/dev/shm", "/dev/shm", "--"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(self.home.path())
            .env_clear()
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        ended(command.spawn().unwrap()).await
    }

    /// Runs the program with something on its standard input.
    pub async fn run_with_input(&self, args: &[&str], input: &str) -> Ended {
        let path = self.path("input");
        std::fs::write(&path, input).unwrap();
        let mut command = self.command(args);
        command.stdin(std::fs::File::open(path).unwrap());
        ended(command.spawn().unwrap()).await
    }

    /// Returns how many requests of a role have come.
    pub fn asked(&self, role: Role) -> usize {
        self.model.requests().iter().filter(|request| request.role == role.as_str()).count()
    }
}

/// Waits for the end of a process.
pub async fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().await.unwrap();
    Ended {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sends a signal.
pub fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// A supervisor's decision for some agents.
pub fn select(agents: &[&str]) -> Reply {
    Reply::json(json!({
        "thought_process": "as scripted", "plan": ["look", "answer"], "selected_agents": agents,
        "tasks": [], "clarification": null,
    }))
}

/// A supervisor's question to the user.
pub fn clarify(question: &str) -> Reply {
    Reply::json(json!({
        "thought_process": "unclear", "plan": [], "selected_agents": [], "tasks": [],
        "clarification": question,
    }))
}

pub fn approved() -> Rule {
    let verdict = json!({ "status": "APPROVED", "refined_output": null, "feedback": null });
    Rule::new(Reply::json(verdict)).role(Role::Reflector)
}

/// The star's common path: the files agent reads a document, the answer cites it.
pub fn reading() -> Script {
    reading_and_answering("It is 42 [1].")
}

/// The same path, with another answer.
pub fn reading_and_answering(answer: &str) -> Script {
    Script::new()
        .rule(Rule::new(select(&["mcp_agent_files"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call("read", json!({ "path": "a.txt" })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("a.txt says 42")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text(answer)).role(Role::Qa))
}

/// The notes agent takes one note, then the run is done.
pub fn noting() -> Script {
    Script::new()
        .rule(Rule::new(select(&["mcp_agent_notes"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call("append_note", json!({ "text": "remember" })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("noted")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text("It is noted.")).role(Role::Qa))
}

/// A model that goes to the answer at once, whatever is asked.
pub fn answering() -> Script {
    Script::new()
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("Hello.")).role(Role::Qa))
}

/// A script with a rule before all others.
pub fn first(rule: Rule, script: Script) -> Script {
    script.rules.into_iter().fold(Script::new().rule(rule), Script::rule)
}

/// Replaces what patterns match by their names, in the order of the rules.
pub fn masked(text: &str, rules: &[(&str, &str)]) -> String {
    rules.iter().fold(text.to_owned(), |text, (pattern, name)| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, *name).into_owned()
    })
}
