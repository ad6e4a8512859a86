//! Runs behind a command line, and runs whose process dies: each is done once, and none is lost (X5, X8).

use std::process::Stdio;

use perihelion_database::{Database, query};
use serde_json::{Value, json};
use tokio::process::Child;
use uuid::Uuid;

use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_run_that_waits_behind_a_command_line_is_done_after_it,
    a_run_that_is_stopped_while_it_waits_behind_a_command_line_lets_the_next_one_begin,
    an_answer_received_before_a_crash_is_no_question_after_it,
    a_run_that_lost_its_task_is_driven_by_the_process_that_it_names,
);

/// Has a command line ask something on a thread that the model does not answer.
async fn busy(served: &Served, thread: &str) -> Child {
    let before = served.model.requests().len();
    let mut command = served.command(&["run", "hang", "--thread", thread, "-q"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    served.model.wait_for_requests(before + 1).await;
    child
}

/// Stops a command line, as a person does.
async fn stop(mut child: Child) {
    let id = nix::unistd::Pid::from_raw(child.id().unwrap().cast_signed());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    child.wait().await.unwrap();
}

/// Waits until the service has found the thread taken twice, and has put the run back as often.
async fn put_back(served: &Served, run: &str) {
    let mut seen = served.get(run).await.1["created_at"].clone();
    for _ in 0..2 {
        let is_so = |run: &Value| run["status"] == "pending" && run["updated_at"] != seen;
        seen = served.until_got(run, is_so).await["updated_at"].clone();
    }
}

async fn begin(served: &Served, thread: &str, words: &str) -> String {
    let (code, run) = served.post(&format!("/threads/{thread}/runs"), &saying(words)).await;
    assert_eq!(code, 200, "{run}");
    format!("/threads/{thread}/runs/{}", run["run_id"].as_str().unwrap())
}

async fn a_run_that_waits_behind_a_command_line_is_done_after_it(served: Served) {
    let thread = served.thread().await;
    let other = busy(&served, &thread).await;
    let run = begin(&served, &thread, "hello").await;
    put_back(&served, &run).await;
    stop(other).await;
    let (code, values) = served.get(&format!("{run}/join")).await;
    assert_eq!(code, 200, "{values}");
    let asked = |message: &&Value| message["type"] == "human" && message["content"] == "hello";
    let messages = values["messages"].as_array().unwrap();
    assert_eq!(messages.iter().filter(asked).count(), 1, "{values}");
    assert_eq!(messages.last().unwrap()["type"], "ai", "{values}");
    assert_eq!(served.get(&run).await.1["status"], "success");
}

async fn a_run_that_is_stopped_while_it_waits_behind_a_command_line_lets_the_next_one_begin(
    served: Served,
) {
    let thread = served.thread().await;
    let other = busy(&served, &thread).await;
    let run = begin(&served, &thread, "hello").await;
    put_back(&served, &run).await;
    let next = begin(&served, &thread, "hello again").await;
    served.post(&format!("{run}/cancel?wait=true"), &json!({})).await;
    assert_eq!(served.get(&run).await.1["status"], "interrupted");
    stop(other).await;
    let (code, values) = served.get(&format!("{next}/join")).await;
    assert_eq!((code, served.get(&next).await.1["status"].clone()), (200, json!("success")));
    let has = |words: &str| {
        values["messages"].as_array().unwrap().iter().any(|one| one["content"] == words)
    };
    assert!(has("hello again") && !has("hello"), "{values}");
}

async fn an_answer_received_before_a_crash_is_no_question_after_it(mut served: Served) {
    let thread = served.thread().await;
    served.post(&format!("/threads/{thread}/runs/wait"), &saying("clarify this: hang")).await;
    let before = served.model.requests().len();
    let run = begin(&served, &thread, "1945").await;
    served.model.wait_for_requests(before + 1).await;
    served.crash_and_start_again().await;
    served.model.wait_for_requests(before + 2).await;
    let asked = served.model.requests().last().unwrap().texts().join("\n");
    let question = asked.rsplit("<user_request>").next().unwrap();
    assert!(question.contains("clarify this: hang"), "{question}");
    served.post(&format!("{run}/cancel?wait=true"), &json!({})).await;
    assert_eq!(served.get(&run).await.1["status"], "interrupted");
}

/// X5: its client left, or the connection to the database broke, just when the row had named the process.
async fn a_run_that_lost_its_task_is_driven_by_the_process_that_it_names(served: Served) {
    let before = served.model.requests().len();
    let busy = served.thread().await;
    begin(&served, &busy, "hang").await;
    served.model.wait_for_requests(before + 1).await;
    let thread = served.thread().await;
    let mut later = saying("hello");
    later["after_seconds"] = json!(3_600);
    let (_, run) = served.post(&format!("/threads/{thread}/runs"), &later).await;
    let id: Uuid = run["run_id"].as_str().unwrap().parse().unwrap();
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let begun = query(
        "UPDATE service_run SET status = 'running', attempt = 1, base_step = 0, first_event = 0, \
            owner = (SELECT owner FROM service_run WHERE status = 'running'), seen_at = created_at WHERE id = $1",
    );
    assert_eq!(database.execute(&begun.bind(id)).await.unwrap(), 1);
    database.close().await;
    let (code, values) = served.get(&format!("/threads/{thread}/runs/{id}/join")).await;
    assert_eq!((code, &values["answer"]), (200, &json!("Hello from the star.")), "{values}");
}

/// X5, X8: both are read before either is written.
#[tokio::test]
async fn of_two_answers_to_a_question_behind_a_command_line_one_is_refused() {
    let served = Served::postgres().await;
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    for waits_with in [None, Some(saying("hello"))] {
        let thread = served.thread().await;
        let runs = format!("/threads/{thread}/runs");
        served.post(&format!("{runs}/wait"), &saying("clarify this")).await;
        if let Some(mut later) = waits_with {
            later["after_seconds"] = json!(3_600);
            assert_eq!(served.post(&runs, &later).await.0, 200);
        }
        let thread: Uuid = thread.parse().unwrap();
        let taken = "UPDATE thread SET owner = 'a command', lease_until = now() + interval '1 hour' WHERE id = $1";
        database.execute(&query(taken).bind(thread)).await.unwrap();
        let mut other = database.begin().await.unwrap();
        let row = query("SELECT 1 FROM thread WHERE id = $1 FOR UPDATE").bind(thread);
        other.fetch_all(&row).await.unwrap();
        let answer = json!({ "assistant_id": "swarm", "command": { "resume": "1945" } });
        let released = async {
            waiting(&database, 2).await;
            other.roll_back().await.unwrap();
        };
        let (one, two, ()) =
            tokio::join!(served.post(&runs, &answer), served.post(&runs, &answer), released);
        let mut codes = [one.0, two.0];
        codes.sort_unstable();
        assert_eq!(codes, [200, 409], "{one:?} {two:?}");
    }
    database.close().await;
}

/// Waits until statements of a database of Postgres wait for locks.
pub async fn waiting(database: &Database, count: i64) {
    let look = query(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    loop {
        let row = database.fetch_optional(&look).await.unwrap().unwrap();
        if row.get::<i64>(0).unwrap() >= count {
            return;
        }
        perihelion::clock::sleep(std::time::Duration::from_millis(10)).await;
    }
}
