//! `perihelion eval`: the program itself, a scripted model over HTTP, a real bundled server.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

mod models;
mod prompts;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel, ScriptedServer};
use serde_json::{Value, json};
use tempfile::TempDir;

const AGENT: &str = "mcp_agent_shelf";

const SUITE: &str = "
name: shelf
cases:
  - name: the answer
    question: What is the answer?
    expect:
      finish_reason: answered
      answer: { contains: ['42'], excludes: [sorry] }
      agents: { used: [shelf] }
      tools: { called: [shelf.read_file], not_called: [shelf.write_file] }
      at_most: { tool_calls: 1, steps: 8 }
    judge: The answer is a number.
";

/// A folder with a file, a scripted model that reads it, a suite.
struct Shelf {
    model: ScriptedServer,
    directory: TempDir,
    database: String,
}

impl Shelf {
    async fn open(answer: &str, judged: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let shelf = directory.path().join("shelf");
        std::fs::create_dir(&shelf).unwrap();
        std::fs::write(shelf.join("a.txt"), "The answer is 42.\n").unwrap();
        let program = env!("CARGO_BIN_EXE_perihelion");
        let table = format!(
            "[mcp_servers.shelf]\ncommand = {program:?}\nargs = [\"mcp\", \"files\", \"--root\", {shelf:?}]\ndescription = \"Files.\"\n"
        );
        std::fs::write(directory.path().join("mcp-servers.toml"), table).unwrap();
        std::fs::write(directory.path().join("suite.yaml"), SUITE).unwrap();
        let model = ScriptedModel::start(script(answer, judged)).await.unwrap();
        Self { model, directory, database: "sqlite:threads.db".to_owned() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn eval(&self, arguments: &[&str]) -> Output {
        self.perihelion(&[&["eval"], arguments].concat()).await
    }

    async fn perihelion(&self, arguments: &[&str]) -> Output {
        self.perihelion_to(Stdio::piped(), arguments).await
    }

    async fn perihelion_to(&self, stdout: Stdio, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perihelion"));
        command
            .args(["--database", &self.database])
            .args(arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.directory.path())
            .env("OPENAI_BASE_URL", self.model.url())
            .env("OPENAI_MODEL", "m")
            .env("PERIHELION_MODELS_MAX_RETRIES", "0")
            .env("PERIHELION_MODELS_PROTOCOL", "full")
            .stdin(Stdio::null())
            .stdout(stdout);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }
}

fn script(answer: &str, judged: bool) -> Script {
    rules(Script::new(), answer, judged)
}

/// Adds the rules of a model that reads the file and gives an answer.
fn rules(script: Script, answer: &str, judged: bool) -> Script {
    let decide = |agents: Value| {
        Reply::json(json!({
            "thought_process": "Thinking.", "plan": ["ask the shelf"], "selected_agents": agents,
            "tasks": [], "clarification": null,
        }))
    };
    let approved = json!({ "status": "APPROVED", "refined_output": null, "feedback": null });
    let verdict = json!({ "passed": judged, "reason": "because it says so" });
    script
        .rule(Rule::new(decide(json!(["qa"]))).role(Role::Supervisor).contains("<result number"))
        .rule(Rule::new(decide(json!([AGENT]))).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("42")).role(Role::Agent).after_tool_results(1))
        .rule(Rule::new(Reply::call("read_file", json!({ "path": "a.txt" }))).role(Role::Agent))
        .rule(Rule::new(Reply::json(approved)).role(Role::Reflector))
        .rule(Rule::new(Reply::text(answer)).role(Role::Qa))
        .rule(Rule::new(Reply::json(verdict)).role(Role::Classifier).stage("judge"))
}

fn words(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// X9
#[tokio::test]
async fn a_passing_suite_ends_with_code_0_and_writes_baseline_and_report() {
    let shelf = Shelf::open("It is 42 [1].", true).await;
    let output = shelf.eval(&["suite.yaml", "--save", "base.json", "--junit", "report.xml"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert!(words(&output).contains("1 of 1"), "{}", words(&output));
    let saved: Value =
        serde_json::from_slice(&std::fs::read(shelf.path("base.json")).unwrap()).unwrap();
    assert_eq!(saved["records"][0]["cases"][0]["runs"][0]["tool_calls"], 1, "{saved}");
    let xml = std::fs::read_to_string(shelf.path("report.xml")).unwrap();
    assert!(xml.contains("failures=\"0\"") && xml.contains("the answer"), "{xml}");
    let asked =
        shelf.model.requests().into_iter().find(|asked| asked.stage.as_deref() == Some("judge"));
    assert!(asked.is_some(), "the criterion was put to a model");
}

/// X9
#[tokio::test]
async fn an_answer_that_got_worse_is_named_with_its_thread_and_ends_with_code_1() {
    let good = Shelf::open("It is 42 [1].", true).await;
    assert_eq!(good.eval(&["suite.yaml", "--save", "base.json"]).await.status.code(), Some(0));
    let bad = Shelf::open("Sorry, it is 41.", false).await;
    std::fs::copy(good.path("base.json"), bad.path("base.json")).unwrap();
    let output = bad.eval(&["suite.yaml", "--baseline", "base.json", "--json"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &record["records"][0]["cases"][0]["runs"][0];
    let findings = run["findings"].to_string();
    for part in ["does not contain: 42", "contains: sorry", "judged: because it says so"] {
        assert!(findings.contains(part), "{part}: {findings}");
    }
    let output = bad.eval(&["suite.yaml", "--baseline", "base.json"]).await;
    assert!(words(&output).contains("worse"), "{}", words(&output));
    let thread = run["thread_id"].as_str().unwrap();
    let mut show = Command::new(env!("CARGO_BIN_EXE_perihelion"));
    show.args(["--database", "sqlite:threads.db", "threads", "show", thread])
        .current_dir(bad.directory.path());
    assert!(show.output().unwrap().status.success(), "the thread stays");
}

#[tokio::test]
async fn a_suite_that_cannot_be_used_is_refused_before_anything_is_asked() {
    let shelf = Shelf::open("It is 42.", true).await;
    std::fs::write(shelf.path("empty.yaml"), "name: x\ncases: [{ name: a, question: q }]\n")
        .unwrap();
    for (suite, part) in [("empty.yaml", "could not fail"), ("none.yaml", "none.yaml")] {
        let output = shelf.eval(&[suite]).await;
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        assert!(words(&output).contains(part), "{}", words(&output));
    }
    let typo = format!(
        "{SUITE}  - name: other\n    question: And?\n    prefer_agents: [nosuch]\n    judge: A number.\n"
    );
    std::fs::write(shelf.path("typo.yaml"), typo).unwrap();
    let output = shelf.eval(&["typo.yaml"]).await;
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    assert!(words(&output).contains("unknown agent: nosuch"), "{}", words(&output));
    let output = shelf.eval(&["suite.yaml", "--save", "suite.yaml/base.json"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    assert!(shelf.model.requests().is_empty());
    let listed = shelf.perihelion(&["threads", "--json"]).await;
    assert_eq!(String::from_utf8_lossy(&listed.stdout).trim(), "[]", "nor is a thread made");
}

#[tokio::test]
async fn a_result_is_shown_even_if_its_files_cannot_be_written() {
    let shelf = Shelf::open("It is 42 [1].", true).await;
    let output = shelf.eval(&["suite.yaml", "--save", "shelf", "--junit", ".", "--json"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["models"][0]["passed"]["mean"], 1.0, "{shown}");
    for path in ["cannot write shelf:", "cannot write .:"] {
        assert!(words(&output).contains(path), "{path}: {}", words(&output));
    }
    // Nor does an output that is full take the files away.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let arguments = ["eval", "suite.yaml", "--save", "base.json", "--json"];
    let output = shelf.perihelion_to(full.into(), &arguments).await;
    assert!(!output.status.success(), "{}", words(&output));
    assert!(shelf.path("base.json").exists(), "{}", words(&output));
}
