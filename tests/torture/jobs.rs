//! What the threads are asked to do: small swarms whose agents call tools with consequences.

use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{RecordedRequest, Reply, Script};
use serde_json::{Value, json};

use super::hand;
use super::logs::{Log, ModelCall};
use super::models::conversation;
use super::random::Random;
use super::turns::since_start;

/// Keyed: declared repeatable, and the receiver refuses a key that it knows.
pub const BOOK: &str = "book";
/// Declared repeatable, though the receiver takes every call.
pub const RING: &str = "ring";
/// Not repeatable: a call with an unknown outcome is put to a person.
pub const MAIL: &str = "mail";
/// Read-only.
pub const LOOK: &str = "look";

/// The servers of the two agents.
pub const SERVERS: [&str; 2] = ["alpha", "beta"];

/// One task of a job: who does it, by which calls, after which others.
#[derive(Debug)]
pub struct Task {
    pub id: &'static str,
    pub server: &'static str,
    pub depends_on: &'static [&'static str],
    pub calls: Vec<&'static str>,
}

/// One job: the whole of what a thread is asked, determined by the seed and the job's number.
#[derive(Debug)]
pub struct Job {
    pub tasks: Vec<Task>,
    /// KiB that a look gives and an agent says; some threads have artifacts, and grow large enough for snapshots.
    pub large_kib: u64,
}

impl Job {
    pub fn draw(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed, &[1, number]);
        let mut calls = |most: u64| {
            let count = random.between(1, most);
            let kinds = [BOOK, BOOK, RING, MAIL, MAIL, LOOK];
            (0..count).map(|_| kinds[random.below(6) as usize]).collect::<Vec<_>>()
        };
        let tasks = vec![
            Task { id: "a", server: SERVERS[0], depends_on: &[], calls: calls(3) },
            Task { id: "b", server: SERVERS[1], depends_on: &[], calls: calls(3) },
            Task { id: "c", server: SERVERS[0], depends_on: &["a", "b"], calls: calls(2) },
        ];
        let is_large = random.per_mille(60);
        let mut job = Self { tasks, large_kib: if is_large { 80 } else { 0 } };
        if is_large {
            job.tasks[1].calls.push(LOOK);
        }
        job
    }

    pub fn thread(seed: u64, number: u64) -> ThreadId {
        ThreadId::from_name(&format!("torture {seed} {number}")).0
    }

    pub fn question(number: u64) -> String {
        format!("Please do job {number}.")
    }

    /// Says what a task is, the same in every attempt at it: job, turn, task.
    pub fn task(number: u64, turn: usize, id: &str) -> String {
        format!("carry out {number}/{turn}/{id}")
    }

    /// Names a call, the same in every attempt at it: job, turn, task, call.
    pub fn line(number: u64, turn: usize, task: &str, call: usize) -> String {
        format!("{number}/{turn}/{task}/{call}")
    }
}

/// Says what the model says, and logs what it was asked.
///
/// It knows nothing but the request, so every process gets the same answers.
pub fn script(seed: u64, log: Log) -> Script {
    Script::new().keep_requests(0).respond_with(move |request| {
        let hash = blake3::hash(request.body.to_string().as_bytes()).to_hex();
        log.note(&ModelCall {
            process: hand::sender(request.headers.get("authorization").map_or("", String::as_str)),
            at: since_start(),
            thread: request.thread.clone(),
            role: request.role.clone(),
            request: hash[..24].to_owned(),
            messages: conversation(&request.body["messages"]),
        });
        answer(seed, request)
    })
}

fn answer(seed: u64, request: &RecordedRequest) -> Option<Reply> {
    match request.role.as_str() {
        "supervisor" => plan(seed, request),
        "agent" => act(seed, request),
        "reflector" => Some(Reply::json(json!({
            "status": "APPROVED", "refined_output": null, "feedback": null
        }))),
        "qa" => Some(Reply::text("All of it is done [1].")),
        _ => None,
    }
}

fn plan(seed: u64, request: &RecordedRequest) -> Option<Reply> {
    let text = request.texts().join("\n");
    if text.contains("<result number=") {
        return Some(decision(&["qa"], &[]));
    }
    let asked = "Please do job ";
    let (_, rest) = text.split_once(&format!("<user_request>\n{asked}"))?;
    let number: u64 = rest.split('.').next()?.parse().ok()?;
    // The history holds the present request too, so a thread that is asked twice works on another turn.
    let turn = text.matches(&format!("\n{asked}{number}.")).count().saturating_sub(1);
    let tasks: Vec<Value> = Job::draw(seed, number)
        .tasks
        .iter()
        .map(|task| {
            json!({
                "id": task.id, "agent": agent(task.server), "depends_on": task.depends_on,
                "task": Job::task(number, turn, task.id),
            })
        })
        .collect();
    Some(decision(&SERVERS.map(agent).each_ref().map(String::as_str), &tasks))
}

pub fn agent(server: &str) -> String {
    format!("mcp_agent_{server}")
}

fn decision(agents: &[&str], tasks: &[Value]) -> Reply {
    Reply::json(json!({
        "thought_process": "As the job says.", "plan": ["do it"], "selected_agents": agents,
        "tasks": tasks, "clarification": null,
    }))
}

/// Reads what [`Job::task`] writes.
fn parse_task(text: &str) -> Option<(u64, usize, &str)> {
    let mut parts = text.strip_prefix("carry out ")?.split('/');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?))
}

fn act(seed: u64, request: &RecordedRequest) -> Option<Reply> {
    let texts = request.texts();
    let (_, rest) = texts.get(1)?.split_once("<task>\n")?;
    let (number, turn, id) = parse_task(rest.lines().next()?)?;
    let job = Job::draw(seed, number);
    let task = job.tasks.iter().find(|task| task.id == id)?;
    let call = request.tool_results();
    Some(match task.calls.get(call) {
        None => {
            let more = " and so on".repeat(job.large_kib as usize * 1024 / 10);
            Reply::text(format!("Task {id} of job {number} is done{more}."))
        }
        Some(tool) => {
            let line = Job::line(number, turn, id, call);
            Reply::call(
                *tool,
                match *tool {
                    LOOK => json!({ "kib": job.large_kib, "line": line }),
                    _ => json!({ "line": line }),
                },
            )
        }
    })
}
