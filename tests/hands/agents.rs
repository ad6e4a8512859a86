//! The kinds of agents on these servers, in the whole star: the real binary, real servers as child processes, a scripted model.

use std::path::PathBuf;
use std::process::{Command, Output};

use perihelion::llm::Role;
use perihelion::llm::scripted::{
    RecordedRequest, Reply, Rule, Script, ScriptedModel, ScriptedServer,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::serve_shop;

/// A star of one server, a scripted model, and a database of its own.
pub(crate) struct Star {
    pub(crate) model: ScriptedServer,
    home: TempDir,
}

impl Star {
    /// `table` is what stands under the server's name in the servers file.
    pub(crate) async fn open(server: &str, table: &str, script: Script) -> Self {
        let star = Self {
            model: ScriptedModel::start(script).await.unwrap(),
            home: tempfile::tempdir().unwrap(),
        };
        let program = env!("CARGO_BIN_EXE_perihelion");
        let text = format!(
            "[mcp_servers.{server}]\ncommand = {program:?}\ndescription = \"It.\"\n{table}\n"
        );
        std::fs::write(star.servers(), text).unwrap();
        star
    }

    fn servers(&self) -> PathBuf {
        self.home.path().join("mcp-servers.toml")
    }

    pub(crate) fn limit_tool_calls(&self, calls: u32) {
        let limits = format!("[limits]\nmax_tool_calls = {calls}\n");
        std::fs::write(self.home.path().join("perihelion.toml"), limits).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perihelion"));
        let database = format!("sqlite:{}", self.home.path().join("threads.db").display());
        command
            .args(["--database", &database])
            .arg("--servers")
            .arg(self.servers())
            .args(arguments);
        command
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("OPENAI_BASE_URL", self.model.url())
            .env("OPENAI_MODEL", "m")
            .env("PERIHELION_MODELS_MAX_RETRIES", "0")
            .env("PERIHELION_MODELS_PROTOCOL", "full");
        command
    }

    pub(crate) async fn perihelion(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Value {
        let output = self.perihelion(arguments).await;
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    pub(crate) fn stage(&self, stage: &str) -> Vec<RecordedRequest> {
        self.model
            .requests()
            .into_iter()
            .filter(|request| request.stage.as_deref() == Some(stage))
            .collect()
    }
}

pub(crate) fn script(agent: &str) -> Script {
    let decide = |agents: Value| {
        Reply::json(
            json!({"thought_process": "Thinking.", "plan": ["ask"], "selected_agents": agents, "tasks": [], "clarification": null}),
        )
    };
    let verdict = json!({"status": "APPROVED", "refined_output": null, "feedback": null});
    Script::new()
        .rule(Rule::new(decide(json!(["qa"]))).role(Role::Supervisor).contains("<result number"))
        .rule(Rule::new(decide(json!([agent]))).role(Role::Supervisor))
        .rule(Rule::new(Reply::json(verdict)).role(Role::Reflector))
        .rule(Rule::new(Reply::text("It is so.")).role(Role::Qa))
}

fn program(code: &str) -> Reply {
    Reply::json(json!({"rationale": "It follows.", "code": code, "table": true}))
}

pub(crate) fn has_python() -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let has = cfg!(feature = "python-wasm")
        || std::env::split_paths(&path).any(|folder| folder.join("bwrap").is_file());
    assert!(has || std::env::var_os("CI").is_none(), "install bubblewrap: Python runs under it");
    if !has {
        eprintln!("nothing was tested: there is no bubblewrap");
    }
    has
}

const PYTHON: &str = "args = [\"mcp\", \"python\"]\nagent = \"python\"";

/// S2.07: a program that failed is repaired with its error, and its table and summary are the result.
#[tokio::test]
async fn a_failed_program_is_repaired_and_its_table_is_the_agents_result() {
    if !has_python() {
        return;
    }
    let script = script("mcp_agent_maths")
        .rule(Rule::new(program("table = [{'n': 1 / 0}]")).stage("code").times(1))
        .rule(Rule::new(program("table = [{'n': 6 * 7}]\ntable")).stage("code"))
        .rule(Rule::new(Reply::text("The answer is 42.")).stage("summary"));
    let star = Star::open("maths", PYTHON, script).await;
    let report = star.run(&["run", "What is six times seven?", "--json", "--include-data"]).await;
    let result = &report["results"][0];
    assert_eq!(
        (&result["status"], &result["output"]),
        (&json!("success"), &json!("The answer is 42.")),
        "{report:#}"
    );
    assert_eq!(result["tabular"]["rows"], json!([[42]]));
    let [first, second] = star.stage("code").try_into().unwrap();
    assert!(!first.contains("ZeroDivisionError") && second.contains("ZeroDivisionError"));
    assert_eq!(first.headers["x-perihelion-role"], "agent");
}

/// S2.07, S2.11: what fails three repairs is a typed error, and the run still ends with an answer.
#[tokio::test]
async fn repeated_outside_access_fails_as_a_sandbox_violation_after_three_repairs() {
    if !has_python() {
        return;
    }
    let script = script("mcp_agent_maths")
        .rule(Rule::new(program("import os\nos.system('id')")).stage("code"));
    let star = Star::open("maths", PYTHON, script).await;
    let report = star.run(&["run", "Who am I?", "--json"]).await;
    let error = &report["results"][0]["error"];
    assert_eq!(error["type"], "SandboxViolation", "{report:#}");
    assert_eq!(star.stage("code").len(), 4);
    let answer = report["answer"].as_str().unwrap();
    assert!(answer.starts_with("The request could not be answered"), "{answer}");
    assert!(answer.contains("SandboxViolation"), "{answer}");
}

/// S3.07: with `approval_mode = "prompt"` a person sees the program before it runs, and can refuse it.
#[tokio::test]
async fn a_program_waits_for_a_person_who_sees_it_if_the_operator_requires_approval() {
    if !has_python() {
        return;
    }
    let script = script("mcp_agent_maths")
        .rule(Rule::new(program("6 * 7")).stage("code"))
        .rule(Rule::new(Reply::text("42.")).stage("summary"));
    let table =
        format!("{PYTHON}\n\n[mcp_servers.maths.tools.run_python]\napproval_mode = \"prompt\"");
    let star = Star::open("maths", &table, script).await;
    let report = star.run(&["run", "Compute.", "--json", "--thread", "t"]).await;
    assert_eq!(report["status"], "interrupted", "{report:#}");
    let interrupt = &report["interrupts"][0];
    assert_eq!(interrupt["kind"], "approval");
    assert!(interrupt["payload"].to_string().contains("6 * 7"), "{interrupt:#}");
    let report = star.run(&["resume", "t", "--approve", "--json"]).await;
    assert_eq!(report["results"][0]["output"], "42.", "{report:#}");
}

/// S3.07: what a person says as they approve a program changes the next one, which waits for them as well.
#[tokio::test]
async fn instructions_of_a_person_about_a_program_change_the_next_one() {
    if !has_python() {
        return;
    }
    let script = script("mcp_agent_maths")
        .rule(Rule::new(program("1 / 3")).stage("code").times(1))
        .rule(
            Rule::new(program("from fractions import Fraction\nstr(Fraction(1, 3))")).stage("code"),
        )
        .rule(Rule::new(Reply::text("One third.")).stage("summary"));
    let table =
        format!("{PYTHON}\n\n[mcp_servers.maths.tools.run_python]\napproval_mode = \"prompt\"");
    let star = Star::open("maths", &table, script).await;
    let report = star
        .run(&["run", "What is 1 by 3?", "--context", "unit=m", "--json", "--thread", "t"])
        .await;
    let shown = &report["interrupts"][0]["payload"]["arguments"];
    assert_eq!(shown["code"], "1 / 3", "{report:#}");
    assert_eq!(shown["inputs"]["context"]["unit"], "m", "{report:#}");
    let report =
        star.run(&["resume", "t", "--approve", "--reason", "Use fractions.", "--json"]).await;
    let shown = &report["interrupts"][0]["payload"]["arguments"];
    assert!(shown["code"].as_str().is_some_and(|code| code.contains("Fraction")), "{report:#}");
    let [first, second] = star.stage("code").try_into().unwrap();
    assert!(!first.contains("Use fractions.") && second.contains("Use fractions."));
    let report = star.run(&["resume", "t", "--approve", "--json"]).await;
    assert_eq!(report["results"][0]["output"], "One third.", "{report:#}");
    assert!(star.stage("summary")[0].contains("1/3"));
}

fn plan(fields: Value) -> Reply {
    let mut plan = json!({"make_request": true, "method": "GET", "path": "/orders/{orderId}", "path_params": [], "query_params": [],
                          "headers": [], "json_body": null, "reason": "It fits.", "failure_reason": null});
    plan.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Reply::json(plan)
}

fn order(id: &str) -> Value {
    json!({"path_params": [{"name": "orderId", "value": id}]})
}

/// S2.06: find, plan, send, summarise; a plan that lacks a value is made again with what is missing.
#[tokio::test]
async fn an_api_call_follows_a_plan_that_is_repaired_by_its_missing_parameters() {
    let home = tempfile::tempdir().unwrap();
    let spec = serve_shop(home.path()).await;
    let script = script("mcp_agent_shop")
        .rule(Rule::new(plan(json!({}))).stage("plan").times(1))
        .rule(Rule::new(plan(order("7"))).stage("plan"))
        .rule(Rule::new(Reply::text("Order 7 is there.")).stage("summary"));
    let star =
        // The operator's own API: what it answers is no text of strangers.
        Star::open(
            "shop",
            &format!("args = [\"mcp\", \"api\", \"--spec\", {spec:?}]\nopen_world = false"),
            script,
        )
        .await;
    let report = star.run(&["run", "Show me one order.", "--json"]).await;
    let result = &report["results"][0];
    assert_eq!(
        (&result["status"], &result["output"]),
        (&json!("success"), &json!("Order 7 is there.")),
        "{report:#}"
    );
    let [first, second] = star.stage("plan").try_into().unwrap();
    assert!(
        first.contains("/orders/{orderId}") && second.contains("needs values for: orderId (path)")
    );
    assert!(
        star.stage("summary")[0].contains("&quot;id&quot;:&quot;7&quot;")
            || star.stage("summary")[0].contains("\"id\":\"7\"")
    );
}

/// S2.06, S2.11: a planner that declines for good is a typed error; one that only lacks documentation is overruled.
#[tokio::test]
async fn a_declined_plan_is_a_typed_error_unless_only_documentation_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let spec = serve_shop(home.path()).await;
    let table = format!("args = [\"mcp\", \"api\", \"--spec\", {spec:?}]");
    let declined = |reason: &str| {
        let mut fields = order("7");
        fields["make_request"] = json!(false);
        fields["failure_reason"] = json!(reason);
        Rule::new(plan(fields)).stage("plan")
    };
    let forced = script("mcp_agent_shop")
        .rule(declined("The documentation does not say what it returns."))
        .rule(Rule::new(Reply::text("Order 7.")).stage("summary"));
    let star = Star::open("shop", &table, forced).await;
    let report = star.run(&["run", "Show me one order.", "--json"]).await;
    assert_eq!(report["results"][0]["output"], "Order 7.", "{report:#}");
    let star = Star::open(
        "shop",
        &table,
        script("mcp_agent_shop").rule(declined("Orders of others are private.")),
    )
    .await;
    let report = star.run(&["run", "Show me one order.", "--json"]).await;
    assert_eq!(report["results"][0]["error"]["type"], "PlanningDeclined", "{report:#}");
}

/// S2.06: the base address comes from the request's context before the description's own.
#[tokio::test]
async fn the_base_address_of_the_context_counts_first() {
    let home = tempfile::tempdir().unwrap();
    let spec = serve_shop(home.path()).await;
    let address = std::fs::read_to_string(home.path().join("address")).unwrap();
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(&spec).unwrap()).unwrap();
    document["servers"] = json!([{"url": "https://nowhere.invalid"}]);
    std::fs::write(&spec, document.to_string()).unwrap();
    let script = script("mcp_agent_shop")
        .rule(Rule::new(plan(order("9"))).stage("plan"))
        .rule(Rule::new(Reply::text("Order 9.")).stage("summary"));
    let star =
        Star::open("shop", &format!("args = [\"mcp\", \"api\", \"--spec\", {spec:?}]"), script)
            .await;
    let context = format!("api_base_url={address}/v1");
    let report = star.run(&["run", "Show me one order.", "--json", "--context", &context]).await;
    assert_eq!(report["results"][0]["output"], "Order 9.", "{report:#}");
}

/// S2.06: where few calls of tools are left, the request gets the last one.
#[tokio::test]
async fn the_last_call_of_a_tool_is_left_to_the_request() {
    let home = tempfile::tempdir().unwrap();
    let spec = serve_shop(home.path()).await;
    let script = script("mcp_agent_shop")
        .rule(Rule::new(plan(order("7"))).stage("plan"))
        .rule(Rule::new(Reply::text("Order 7.")).stage("summary"));
    let table = format!("args = [\"mcp\", \"api\", \"--spec\", {spec:?}]");
    let star = Star::open("shop", &table, script).await;
    star.limit_tool_calls(2);
    let report = star.run(&["run", "Show me one order.", "--json"]).await;
    assert_eq!(report["results"][0]["output"], "Order 7.", "{report:#}");
}

/// S2.06: headers of the request's context reach the API; no model, question or record shows them.
#[tokio::test]
async fn headers_of_the_context_reach_the_api_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let spec = serve_shop(home.path()).await;
    let script = script("mcp_agent_shop")
        .rule(Rule::new(plan(order("9"))).stage("plan"))
        .rule(Rule::new(Reply::text("Order 9.")).stage("summary"));
    let table = format!("args = [\"mcp\", \"api\", \"--spec\", {spec:?}]");
    let star = Star::open("shop", &table, script).await;
    let context = "api_headers={\"X-Trace\": \"trace-77\"}";
    let report = star.run(&["run", "Show me one order.", "--json", "--context", context]).await;
    assert_eq!(report["results"][0]["output"], "Order 9.", "{report:#}");
    let called = report["results"][0]["tools"].to_string();
    assert!(!called.contains("trace-77"), "{called}");
    assert!(!star.stage("plan")[0].contains("trace-77"));
    assert!(star.stage("summary")[0].contains("trace-77"), "the API echoes it");
}
