//! Runs behind a command line, and runs whose process dies: each is done once, and none is lost (X5, X8).

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Child;

use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_run_that_waits_behind_a_command_line_is_done_after_it,
    a_run_that_is_stopped_while_it_waits_behind_a_command_line_lets_the_next_one_begin,
    an_answer_received_before_a_crash_is_no_question_after_it,
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
