//! What a run of the service asks of the database, counted and looked at before a real Postgres.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::people::key;
use super::saying;
use super::sent::{Record, Sent, TEST};
use super::served::Served;
use super::shards::{tables, unconfined};
use super::users::{by_key, sent_as};

/// Statements of a run that a client waits for, at most, beside those that append its events, whose number depends on how long
/// it takes: three of its request, three to begin, four steps, four recorded effects, and three to end.
const MOST: usize = 17;

/// What the process asks beside its runs, by parts of the statements: which thread has work is not known before.
const POLLS: &[&str] = &[
    // Its own runs: their heartbeat, and which of them are to stop.
    "SELECT id, cancel FROM service_run WHERE owner = ",
    "UPDATE service_run SET seen_at = ",
    "FROM thread_stop s JOIN thread t",
    // Runs that are due, or have lost their process.
    "SELECT DISTINCT thread_id, tenant FROM service_run w WHERE status = 'pending'",
    "SELECT DISTINCT owner FROM service_run",
    "SELECT id FROM service_run WHERE status = 'running' AND (owner IS NULL",
    "CASE WHEN lease_until > now() THEN owner END AS holder FROM thread",
    "DELETE FROM wake_call WHERE thread_id = (SELECT",
    // What is due, or old.
    "FROM approval_request WHERE status = 'pending' AND expires_at <",
    "FROM service_cron WHERE enabled",
    "FROM service_delivery d WHERE ended_at IS NULL",
    "DELETE FROM service_delivery WHERE ended_at <",
    "SELECT thread_id, tenant FROM service_run WHERE temporary",
    "DELETE FROM event WHERE (thread_id, first_id) IN (",
    "DELETE FROM spending WHERE day <",
    "DELETE FROM service_item WHERE expires_at",
    // Calls of other processes, and for whom a connection acts.
    "LISTEN ",
    "set_config('perihelion.all_tenants'",
];

/// Statements of a run that name no thread and no tenant, by their parts, and why they cannot.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("SELECT 1 FROM api_key UNION ALL SELECT 1 FROM person", "whether anybody has to log in"),
    ("FROM api_key k LEFT JOIN person p", "whose key it is, says the key alone"),
    (
        "WHERE e.kind = 'interrupt' AND e.key = $1",
        "an answer names its question, which has the ID of its row",
    ),
];

/// Returns the statements of a run: of what was sent, all but polls and tests of connections.
fn of_run(sent: &Sent) -> Vec<&str> {
    let is_poll = |statement: &str| POLLS.iter().any(|poll| statement.contains(poll));
    let statements = sent.statements.iter().map(String::as_str);
    statements.filter(|statement| *statement != TEST && !is_poll(statement)).collect()
}

/// Returns the statements of a run, except those of its log of events: their number depends on how long it takes.
pub fn without_events(sent: &Sent) -> Vec<&str> {
    let is_of_log = |statement: &str| {
        statement.contains("INSERT INTO event ") || statement.contains(" FROM event ")
    };
    let mut statements = of_run(sent);
    statements.retain(|statement| !is_of_log(statement));
    statements
}

async fn wait(served: &Served, thread: &str, body: &Value) -> Value {
    let (code, answer) = served.post(&format!("/threads/{thread}/runs/wait"), body).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

/// X1: as many for the twentieth turn of a thread as for the second.
#[tokio::test]
async fn a_run_needs_as_few_statements_on_an_old_thread_as_on_a_young_one() {
    let (served, record) = Record::of_server().await;
    let thread = served.thread().await;
    let mut of_turns = Vec::new();
    for _ in 0..20 {
        record.take();
        wait(&served, &thread, &saying("hello")).await;
        let sent = record.take();
        let statements = without_events(&sent).into_iter().map(str::to_owned);
        of_turns.push(statements.collect::<Vec<_>>());
    }
    // The first turn also notes the assistant of the thread. What a poll finds is looked at beside some of them.
    for turns in [&of_turns[1..8], &of_turns[12..]] {
        let least = turns.iter().min_by_key(|statements| statements.len()).unwrap();
        assert!(least.len() <= MOST, "{}: {least:#?}", least.len());
    }
}

/// X1: every statement of a run names its thread or its tenant, or is a known exception.
#[tokio::test]
async fn each_statement_of_a_run_needs_one_shard() {
    let (served, record) = Record::of_server().await;
    let thread = served.thread().await;
    record.take();
    wait(&served, &thread, &saying("hello")).await;
    let streamed = json!({ "stream_mode": ["values", "updates", "messages-tuple", "tasks"] });
    let mut body = saying("hello again");
    body["stream_mode"] = streamed["stream_mode"].clone();
    let path = format!("{}/threads/{thread}/runs/stream", served.url);
    let asked = served.http.post(path).header("content-type", "application/json");
    let events = asked.body(body.to_string()).send().await.unwrap().text().await.unwrap();
    assert!(events.contains("Hello from the star."), "{events}");
    // A tool call that waits for an approval, and a question that is answered.
    for (text, answer) in [("approve this", "approve"), ("clarify this", "1945")] {
        let asked = wait(&served, &thread, &saying(text)).await;
        assert!(asked["__interrupt__"].is_array(), "{asked}");
        let resume = json!({ "assistant_id": "swarm", "command": { "resume": answer } });
        let ended = wait(&served, &thread, &resume).await;
        assert!(ended["__interrupt__"].is_null(), "{ended}");
    }
    let mut sent = record.take();
    // A user by their key, whose thread it is from here on.
    served.program_with_input(&["users", "add", "ann"], "a long password\n").await;
    let ann = key(&served, &["laptop", "--user", "ann", "--scopes", "read,run"]).await;
    let ann = by_key(&ann);
    // What the command line asked.
    record.take();
    let (code, made) = sent_as(&served, &ann, "POST", "/threads", Some(json!({}))).await;
    assert_eq!(code, 200, "{made}");
    let path = format!("/threads/{}/runs/wait", made["thread_id"].as_str().unwrap());
    let (code, ended) = sent_as(&served, &ann, "POST", &path, Some(saying("hello"))).await;
    assert_eq!(code, 200, "{ended}");
    sent.statements.extend(record.take().statements);
    let tables = tables();
    let known = |statement: &str| EXCEPTIONS.iter().any(|(part, _)| statement.contains(part));
    let across: BTreeSet<String> = of_run(&sent)
        .into_iter()
        .filter(|statement| !known(statement))
        .filter_map(|statement| {
            let tables = unconfined(statement, &tables);
            (!tables.is_empty()).then(|| format!("{tables:?}: {statement}"))
        })
        .collect();
    assert!(across.is_empty(), "{across:#?}");
}

/// Statements that the stream of an old thread takes more than that of a young one, at most.
const MORE: usize = 8;

/// X1: runs that the client has are not read one by one.
#[tokio::test]
async fn the_stream_of_an_old_thread_is_opened_with_as_few_statements_as_that_of_a_young_one() {
    let (served, record) = Record::of_server().await;
    let thread = served.thread().await;
    let stream = format!("/threads/{thread}/stream");
    let mut of_runs = Vec::new();
    let mut last = "-1".to_owned();
    for _ in 0..24 {
        record.take();
        let asked = served.http.get(format!("{}{stream}", served.url));
        let mut open = asked.header("last-event-id", &last).send().await.unwrap();
        let runs = format!("/threads/{thread}/runs");
        served.post(&runs, &saying("hello")).await;
        let mut text = String::new();
        // A client that comes back hears the next run, and nothing of those before.
        while !(text.contains("run_done") && text.ends_with("\n\n")) {
            let piece = open.chunk().await.unwrap().unwrap();
            text.push_str(&String::from_utf8_lossy(&piece));
        }
        assert_eq!(text.matches("\"attempt\"").count(), 1, "{text}");
        let mut ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
        last = ids.next_back().unwrap().to_owned();
        of_runs.push(of_run(&record.take()).len());
    }
    let least = |runs: &[usize]| runs.iter().copied().min().unwrap();
    let young = least(&of_runs[1..8]);
    let old = least(&of_runs[16..]);
    assert!(old < young + MORE, "young {young}, old {old}: {of_runs:?}");
}
