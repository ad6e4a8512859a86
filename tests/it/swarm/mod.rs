//! The star end to end: scripted model over HTTP, servers as child processes, every store.
//!
//! Enter at [`Room`]: one thread with its store, its model and its servers, which can crash and be
//! opened again.

mod approvals;
mod artifacts;
mod asking;
mod breaker;
mod crashes;
mod decisions;
mod direct;
mod failures;
mod handed_back;
mod injection;
mod people;
mod planning;
mod plans;
mod poison;
mod prompts;
mod protocol;
mod reflection;
mod reloads;
mod requests;
mod scale;
mod secrets;
mod strong;
mod together;
mod turns;
mod windows;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use perihelion::checkpoint::{Claim, Store};
use perihelion::config::{Overrides, Settings};
use perihelion::graph::RunEvent;
use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{RecordedRequest, Reply, Script, ScriptedModel, ScriptedServer};
use perihelion::llm::{OpenAiModel, Role};
use perihelion::mcp::{Pool, PoolOptions, ServersFile};
use perihelion::runner::{ReplayReport, RunOptions, StateView};
use perihelion::runtime::{Error, Graphs, RunReport, RunStatusView, Runtime, Traces};
use perihelion::swarm::{GRAPH, GraphState, Request};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::store_suite::stores::{self, Fixture};

/// The API key of every test; it must show nowhere.
const KEY: &str = "sk-canary-0123456789";

/// A secret of the servers' environment; it must show nowhere.
const TOKEN: &str = "token-canary-9876543210";

const A: &str = "mcp_agent_alpha";
const B: &str = "mcp_agent_beta";

/// A thread and everything around it.
struct Room {
    model: ScriptedServer,
    store: Arc<dyn Store>,
    url: Option<String>,
    directory: TempDir,
    thread: ThreadId,
    env: BTreeMap<String, String>,
    /// The servers file; by default two workshops, `alpha` and `beta`.
    servers: String,
}

impl Room {
    async fn in_memory(script: Script) -> Self {
        Self::on(&stores::memory().await, script).await
    }

    async fn on(fixture: &Fixture, script: Script) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let model = ScriptedModel::start(script).await.unwrap();
        let env = [
            ("OPENAI_BASE_URL", model.url()),
            ("OPENAI_API_KEY", KEY),
            ("OPENAI_MODEL", "big"),
            ("PERIHELION_MODELS_MAX_RETRIES", "0"),
            ("PERIHELION_MODELS_PROTOCOL", "full"),
            ("SERVER_TOKEN", TOKEN),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut room = Self {
            model,
            store: Arc::clone(&fixture.store),
            url: fixture.url.clone(),
            directory,
            thread: ThreadId::new(),
            env,
            servers: String::new(),
        };
        room.servers = room.workshop("alpha", "") + &room.workshop("beta", "");
        room
    }

    fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds lines to the table of `alpha`, which stands last then.
    fn with_alpha(mut self, lines: &str) -> Self {
        self.servers = self.workshop("beta", "") + &self.workshop("alpha", lines);
        self
    }

    /// Writes the table of a workshop.
    fn workshop(&self, name: &str, lines: &str) -> String {
        let test = std::env::current_exe().unwrap();
        let program = test.ancestors().nth(2).unwrap().join("examples/workshop_mcp_server");
        assert!(program.exists(), "build it with `cargo build --examples`: {}", program.display());
        let facts = json!({
            "color": "The color is teal.",
            "size": "The size is 42.",
            "trap": injection::TRAP,
            "token": format!("The token is {TOKEN}."),
        });
        let facts = facts.to_string();
        let log = self.log_path(name).display().to_string();
        format!(
            "[mcp_servers.{name}]\ncommand = {program:?}\ndescription = \"Workshop {name}.\"\n\
             env = {{ FACTS = {facts:?}, LOG = {log:?}, TOKEN = \"${{SERVER_TOKEN}}\" }}\n{lines}\n"
        )
    }

    fn log_path(&self, server: &str) -> PathBuf {
        self.directory.path().join(format!("{server}.log"))
    }

    /// Returns the lines that a workshop has written down: its side effects.
    fn log(&self, server: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.log_path(server)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until a workshop has written so many lines down.
    async fn until_log(&self, server: &str, lines: usize) {
        let started = perihelion::clock::monotonic();
        while self.log(server).len() < lines {
            assert!(started.elapsed() < Duration::from_secs(30), "the call did not arrive");
            tokio::task::yield_now().await;
        }
    }

    fn settings(&self) -> Settings {
        let file = self.directory.path().join("perihelion.toml");
        let file = file.exists().then_some(file);
        let env = |name: &str| self.env.get(name).cloned();
        Settings::load(Overrides::default(), file.as_deref(), &env).unwrap()
    }

    /// Opens a runtime as a fresh process would.
    async fn open(&self) -> Runtime {
        self.open_with(PoolOptions::default()).await
    }

    /// Opens a runtime whose servers are started in another way.
    async fn open_with(&self, options: PoolOptions) -> Runtime {
        let settings = self.settings();
        let model = Arc::new(OpenAiModel::new(&settings.models).unwrap());
        let env = |name: &str| self.env.get(name).cloned();
        let servers = ServersFile::parse("mcp-servers.toml".as_ref(), &self.servers, &env).unwrap();
        let store = match &self.url {
            Some(url) => perihelion::checkpoint::open(url).await.unwrap(),
            None => Arc::clone(&self.store),
        };
        let pool = Pool::new(servers, options);
        let builder = Runtime::builder(settings, perihelion::agents::kinds())
            .with_model(model)
            .with_pool(pool);
        builder.with_store(store).open().await.unwrap()
    }

    /// Runs the recorded thread again, offline.
    async fn replay(&self) -> ReplayReport {
        let settings = self.settings();
        let kinds = Arc::new(perihelion::agents::kinds());
        let graph = Graphs::new().offline(&settings, &kinds, GRAPH, &self.store).unwrap().unwrap();
        let traces = Traces::of(&self.store, &settings);
        traces.replay(graph.as_ref(), self.thread, None).await.unwrap()
    }

    /// Asks in a runtime of its own, and closes it.
    async fn ask(&self, question: &str) -> RunReport {
        let request = Request { question: question.into(), ..Request::default() };
        self.ask_for(request).await.unwrap()
    }

    async fn ask_for(&self, request: Request) -> Result<RunReport, Error> {
        let runtime = self.open().await;
        let options = runtime.run_options();
        let report = runtime.ask(self.thread, None, request, options).await;
        self.close(runtime).await;
        report
    }

    async fn resume(&self) -> RunReport {
        let runtime = self.open().await;
        let report = runtime.resume(self.thread, runtime.run_options()).await.unwrap();
        self.close(runtime).await;
        report
    }

    /// Answers the one open question that fits, and continues.
    async fn answer(&self, answer: perihelion::runtime::Answer) -> RunReport {
        let runtime = self.open().await;
        runtime.answer(self.thread, None, answer).await.unwrap();
        let report = runtime.resume(self.thread, runtime.run_options()).await.unwrap();
        self.close(runtime).await;
        report
    }

    async fn close(&self, runtime: Runtime) {
        // The store in memory has to outlive the runtime, and closing it is nothing.
        runtime.close().await;
    }

    /// Starts a run that is going to be cut off.
    async fn ask_in_background(&self, question: &str) -> JoinHandle<()> {
        let runtime = self.open().await;
        let request = Request { question: question.into(), ..Request::default() };
        let thread = self.thread;
        tokio::spawn(async move {
            let options = runtime.run_options();
            let report = runtime.ask(thread, None, request, options).await;
            panic!("the run was to be cut off, and ended: {report:?}");
        })
    }

    async fn resume_in_background(&self) -> JoinHandle<()> {
        let runtime = self.open().await;
        let thread = self.thread;
        tokio::spawn(async move {
            let report = runtime.resume(thread, runtime.run_options()).await;
            panic!("the run was to be cut off, and ended: {report:?}");
        })
    }

    /// Waits for a moment of a run, which must not end before it.
    async fn until(&self, run: &mut JoinHandle<()>, moment: impl Future<Output = ()>) {
        tokio::select! {
            () = moment => {}
            ended = run => panic!("the run ended too early: {ended:?}"),
        }
    }

    /// Ends a run as a crash does: nothing is released, and the lease is left to run out.
    async fn crash(&self, run: JoinHandle<()>) {
        run.abort();
        assert!(run.await.unwrap_err().is_cancelled());
        // The holder is this very process, which lives; so the lease is made to run out.
        self.store
            .claim(Claim::new(self.thread, "a crashed process", Duration::ZERO).forced())
            .await
            .unwrap();
    }

    async fn state(&self) -> Arc<GraphState> {
        StateView::read(self.store.as_ref(), self.thread, None).await.unwrap().state
    }

    fn requests(&self, role: Role) -> Vec<RecordedRequest> {
        let all = self.model.requests().into_iter();
        all.filter(|request| request.role == role.as_str()).collect()
    }

    fn agent_requests(&self, agent: &str) -> Vec<RecordedRequest> {
        let mut all = self.requests(Role::Agent);
        all.retain(|request| request.agent.as_deref() == Some(agent));
        all
    }

    /// Asserts that no request was sent twice, except those that contain a text.
    fn assert_nothing_paid_twice(&self, except: &str) {
        let mut seen: Vec<RecordedRequest> = Vec::new();
        for request in self.model.requests() {
            let same = |one: &RecordedRequest| {
                (&one.role, &one.agent, &one.body) == (&request.role, &request.agent, &request.body)
            };
            let excepted = !except.is_empty() && request.contains(except);
            assert!(excepted || !seen.iter().any(same), "paid twice: {request:#?}");
            seen.push(request);
        }
    }
}

/// Runs with events, all of them.
fn listening() -> (RunOptions<GraphState>, tokio::sync::mpsc::Receiver<RunEvent<GraphState>>) {
    let (events, heard) = tokio::sync::mpsc::channel(10_000);
    let wants =
        perihelion::graph::Wants { tasks: true, updates: true, values: true, checkpoints: true };
    (RunOptions { wants, events: Some(events), ..RunOptions::default() }, heard)
}

/// A decision that selects agents; each gets the task `do it`, or what `tasks` say.
fn decide(plan: &[&str], agents: &[&str], tasks: Value) -> Reply {
    Reply::json(json!({
        "thought_process": "Thinking.", "plan": plan, "selected_agents": agents,
        "tasks": tasks, "clarification": null,
    }))
}

fn task(id: &str, agent: &str, task: &str, depends_on: &[&str]) -> Value {
    json!({ "id": id, "agent": agent, "task": task, "depends_on": depends_on })
}

fn finish() -> Reply {
    decide(&["done: all"], &["qa"], json!([]))
}

fn approved() -> Reply {
    verdict("APPROVED", None, None)
}

fn verdict(status: &str, refined: Option<&str>, feedback: Option<&str>) -> Reply {
    Reply::json(json!({ "status": status, "refined_output": refined, "feedback": feedback }))
}

/// Says of each request what it is: role, agent, tool results so far, and whether agents have reported.
struct Asked<'a> {
    role: &'a str,
    agent: &'a str,
    tools: usize,
    /// Results in the supervisor's or QA's prompt.
    results: usize,
    text: String,
}

impl<'a> From<&'a RecordedRequest> for Asked<'a> {
    fn from(request: &'a RecordedRequest) -> Self {
        let text = request.texts().join("\n");
        Self {
            role: &request.role,
            agent: request.agent.as_deref().unwrap_or_default(),
            tools: request.tool_results(),
            results: text.matches("<result number=").count(),
            text,
        }
    }
}

/// A script by one function, which needs to name only what is special: the reflector approves, QA answers.
fn script(say: impl Fn(&Asked<'_>) -> Option<Reply> + Send + Sync + 'static) -> Script {
    Script::new().respond_with(move |request| {
        let asked = Asked::from(request);
        let usual = || match asked.role {
            "reflector" => Some(approved()),
            "qa" => Some(Reply::text("The answer [1].")),
            "supervisor" if asked.results > 0 => Some(finish()),
            _ => None,
        };
        say(&asked).or_else(usual)
    })
}

/// The simplest run: one agent, one call, one result.
fn one_call(tool: &'static str, arguments: Value) -> Script {
    script(move |asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", 0, _) => Some(Reply::call(tool, arguments.clone())),
        ("agent", _, _) => Some(Reply::text("Found it.")),
        _ => None,
    })
}

fn assert_done(report: &RunReport) {
    assert_eq!(report.status, RunStatusView::Done, "{report:#?}");
}

/// A run in which no task succeeded has an answer that says so, and failed.
fn assert_nothing_worked(report: &RunReport) {
    assert_eq!(report.status, RunStatusView::Failed, "{report:#?}");
    assert!(report.answer.is_some(), "{report:#?}");
}
