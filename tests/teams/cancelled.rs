//! A run that is cancelled while teams are at work ends with all that they do.

use perihelion::checkpoint::{
    self, EffectKind, EffectStatus, RunStatus, Store, ThreadFilter, ThreadInfo, ThreadStatus,
};
use perihelion::ids::ThreadId;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::hostile::{assert_none_left, marked, new_mark, table};
use crate::office::{BOTH, INSIDE, Kept, Office, working};
use crate::world::{ended, first, select, signal};

/// Two teams deep, two agents at once: one waits for its model, the other one for a tool.
fn designs() -> [Value; 2] {
    let agent = |name: &str, server: &str| json!({ "name": name, "role": name, "goal": "Works.", "servers": [server] });
    [
        json!({
            "name": "research", "description": "Finds answers.",
            "agents": [agent("reader", "files"), agent("keeper", "notes"), agent("patient", "slow")],
        }),
        json!({
            "name": "answers", "description": "Answers whatever is asked.",
            "agents": [agent("helper", "team_research")],
        }),
    ]
}

fn script() -> Script {
    let supervisor = |agents: &[&str]| Rule::new(select(agents)).role(Role::Supervisor);
    let linger = json!({ "begun": "begun", "until": "until" });
    let patient = Rule::new(Reply::call("linger", linger)).role(Role::Agent).agent("patient");
    let monitor = Rule::new(Reply::hang()).role(Role::Agent).agent("keeper");
    let mut script = first(supervisor(&["keeper", "patient"]).contains(INSIDE), working());
    script = first(supervisor(&["team_answers"]).contains("- team_answers: "), script);
    first(monitor.after_tool_results(1), first(patient.after_tool_results(0), script))
}

async fn office(kept: Kept, script: Script) -> (Office, String) {
    let office = Office::open(kept, script).await;
    let (mark, env) = new_mark();
    office.add_server(&table("slow", "plain", &format!("{env}\nopen_world = false")));
    for design in designs() {
        office.import(&design).await;
    }
    (office, mark)
}

/// Waits until both agents are at work in the team of the team.
async fn at_work(office: &Office) {
    // Three supervisors, keeper twice, patient once.
    office.world.model.wait_for_requests(6).await;
    while !office.world.path("begun").exists() {
        tokio::task::yield_now().await;
    }
}

/// Returns the threads of the teams below a thread.
async fn teams_of(store: &dyn Store, thread: ThreadId) -> Vec<ThreadInfo> {
    let filter =
        ThreadFilter { root: Some(thread), with_children: true, ..ThreadFilter::default() };
    store.list(&filter).await.unwrap()
}

/// Tells that a thread and those of its teams were cancelled, and that of their tools' calls each was recorded as it ended.
async fn assert_cancelled(store: &dyn Store, thread: ThreadId) {
    let teams = teams_of(store, thread).await;
    assert_eq!(teams.len(), 2, "{teams:?}");
    let mut calls = Vec::new();
    for one in teams.into_iter().chain([store.info(thread).await.unwrap()]) {
        assert_eq!((one.status, one.owner), (ThreadStatus::Failed, None), "{}", one.namespace);
        let runs = store.runs(one.id).await.unwrap();
        assert_eq!(runs.last().unwrap().status, RunStatus::Cancelled, "{}", one.namespace);
        let effects = store.effects(one.id, None).await.unwrap();
        calls.extend(effects.into_iter().filter(|effect| effect.kind == EffectKind::Tool));
    }
    let mut calls: Vec<_> = calls.iter().map(|one| (one.name.as_str(), one.status)).collect();
    calls.sort_unstable_by_key(|call| call.0);
    let done = EffectStatus::Done;
    assert_eq!(calls, [("notes.append_note", done), ("slow.linger", done)]);
}

/// S1.10, S2.12, X2: what was sent is awaited and recorded; nothing begins after it, at any depth.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_its_teams_and_starts_no_further_call() {
    perihelion::config::tls::install();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for kept in BOTH {
        let (office, mark) = office(kept, script()).await;
        let (mut server, url) = office.serve().await;
        let post = async |path: &str, body: Value| {
            let asked = http.post(format!("{url}{path}")).body(body.to_string());
            let answer = asked.header("content-type", "application/json").send().await.unwrap();
            let code = answer.status().as_u16();
            (code, serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap_or_default())
        };
        let get = async |path: &str| {
            let answer = http.get(format!("{url}{path}")).send().await.unwrap();
            serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap()
        };
        let (_, thread) = post("/threads", json!({})).await;
        let thread = thread["thread_id"].as_str().unwrap();
        let input = json!({ "assistant_id": "swarm", "input": { "question": "What is it?" } });
        let (_, run) = post(&format!("/threads/{thread}/runs"), input).await;
        let run = format!("/threads/{thread}/runs/{}", run["run_id"].as_str().unwrap());
        at_work(&office).await;

        let (code, _) = post(&format!("{run}/cancel"), json!({})).await;
        assert_eq!(code, 202, "{kept:?}");
        office.world.write("until", "");
        let (code, _) = post(&format!("{run}/cancel?wait=true"), json!({})).await;
        assert!([200, 404].contains(&code), "{kept:?}: it ends, or has ended: {code}");

        assert_eq!(get(&run).await["status"], "interrupted", "{kept:?}");
        assert_eq!(get(&format!("/threads/{thread}")).await["status"], "interrupted");
        let store = checkpoint::open(&office.url()).await.unwrap();
        assert_cancelled(store.as_ref(), thread.parse().unwrap()).await;
        assert_eq!(office.notes(), 1, "{kept:?}");
        assert_eq!(office.world.model.requests().len(), 6, "{kept:?}: nobody was asked any more");
        store.close().await;

        assert!(!marked(&mark).is_empty(), "{kept:?}: the server serves others");
        signal(&server, nix::sys::signal::Signal::SIGTERM);
        server.wait().await.unwrap();
        assert_none_left(&mark).await;
    }
}

/// S1.10, S2.12: the worker ends the run itself, with its teams; the thread is not taken from it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_the_worker_that_runs_the_run_and_its_teams() {
    perihelion::config::tls::install();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for kept in BOTH {
        let hangs = Rule::new(Reply::hang()).role(Role::Agent).agent("patient");
        let (office, _) = office(kept, first(hangs.after_tool_results(1), script())).await;
        office.world.write("until", "");
        let thread = office.world.run(&["run", "What is it?", "--detach", "-q"]).await.code(0);
        let thread = thread.stdout.trim().to_owned();
        let worker = office.world.start(&["worker"]);
        // Three supervisors, and both agents twice.
        office.world.model.wait_for_requests(7).await;
        let store = checkpoint::open(&office.url()).await.unwrap();
        let id: ThreadId = thread.parse().unwrap();
        let fence = store.info(id).await.unwrap().fence;

        let (mut server, url) = office.serve().await;
        let send = async |method: reqwest::Method, path: &str, body: Value| {
            let asked = http.request(method, format!("{url}{path}")).body(body.to_string());
            let answer = asked.header("content-type", "application/json").send().await.unwrap();
            serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap_or_default()
        };
        // A run that only continues follows the one who is at work on the thread.
        let body = json!({ "assistant_id": "swarm", "input": null });
        let runs = format!("/threads/{thread}/runs");
        let run = send(reqwest::Method::POST, &runs, body).await;
        let run = format!("{runs}/{}", run["run_id"].as_str().unwrap());
        while send(reqwest::Method::GET, &run, json!({})).await["status"] == "pending" {
            tokio::task::yield_now().await;
        }
        send(reqwest::Method::POST, &format!("{run}/cancel?wait=true"), json!({})).await;
        let run = send(reqwest::Method::GET, &run, json!({})).await;
        assert_eq!(run["status"], "interrupted", "{kept:?}: {run:#}");
        assert_cancelled(store.as_ref(), id).await;
        assert_eq!(store.info(id).await.unwrap().fence, fence, "{kept:?}: it was not taken");
        assert_eq!(office.world.model.requests().len(), 7, "{kept:?}");
        store.close().await;
        server.kill().await.unwrap();
        signal(&worker, nix::sys::signal::Signal::SIGTERM);
        let output = ended(worker).await.code(0).stderr;
        assert!(!output.contains(": handed over"), "{kept:?}: {output}");
    }
}
