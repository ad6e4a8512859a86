//! Runs that a process holds and somebody at another one wants ended.

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::{Value, json};
use tokio::process::Child;

use super::processes::{Kind, Site, on_both_databases, site};
use crate::cli::world::{ended, first, noting, signal};

on_both_databases!(
    a_worker_with_a_stop_request_ends_the_run_without_a_handover,
    a_command_line_that_is_asked_ends_its_run_itself,
    an_unresponsive_process_loses_its_thread_to_another,
);

/// A run that has taken its note, and waits for the model's answer.
async fn hanging(on: Kind) -> Site {
    site(on, first(Rule::new(Reply::hang()).role(Role::Qa).nth(1), noting())).await
}

async fn cancelled(site: &Site, thread: &str, wait: &str) -> Value {
    let args = ["threads", "cancel", thread, "--wait", wait, "--json"];
    site.world.run(&args).await.code(0).json()
}

fn names(text: &Value, process: &Child) -> bool {
    let who = format!("process {} on ", process.id().unwrap());
    text["was_run_by"].as_str().unwrap().starts_with(&who)
}

/// The thread is as a cancel at the process itself leaves it: what was done is kept, and nobody continues with it unasked.
async fn assert_cancelled(site: &Site, thread: &str) {
    let shown = site.world.run(&["threads", "show", thread, "--json"]).await.code(0).json();
    let last = shown["runs"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&shown["status"], &last["status"]),
        (&json!("stopped"), &json!("stopped")),
        "{shown:#}"
    );
    assert_eq!(last["finish_reason"], "cancelled", "{shown:#}");
    assert_eq!(site.world.read("notes.jsonl").lines().count(), 1);
    assert_eq!(site.world.model.requests().len(), 6);
    site.world.run(&["worker", "--drain"]).await.code(0).says("completed runs: 0");
    site.world.run(&["threads", "cancel", thread]).await.code(1).says("it is not running");
}

/// S2.12, X5
async fn a_worker_with_a_stop_request_ends_the_run_without_a_handover(on: Kind) {
    let site = hanging(on).await;
    let thread = site.submit("n").await;
    let worker = site.worker();
    site.world.model.wait_for_requests(6).await;
    let text = cancelled(&site, "n", "60").await;
    assert_eq!((&text["by_force"], names(&text, &worker)), (&json!(false), true), "{text}");
    assert_cancelled(&site, "n").await;
    // It works on for others, and continues with this one when it is asked to.
    let done = site.world.run(&["resume", "n", "--json"]).await.code(0).json();
    assert_eq!((&done["status"], &done["thread_id"]), (&json!("done"), &json!(thread)), "{done:#}");
    let text = site.stop(worker).await;
    assert!(!text.contains(": handed over"), "{text}");
}

/// S2.12, X5
async fn a_command_line_that_is_asked_ends_its_run_itself(on: Kind) {
    let site = hanging(on).await;
    let run = site.world.start(&["run", "Note it", "--thread", "n", "--json"]);
    site.world.model.wait_for_requests(6).await;
    let text = cancelled(&site, "n", "60").await;
    assert_eq!((&text["by_force"], names(&text, &run)), (&json!(false), true), "{text}");
    let report = ended(run).await.code(1).json();
    assert_eq!(
        (&report["status"], &report["finish_reason"]),
        (&json!("stopped"), &json!("cancelled"))
    );
    assert_cancelled(&site, "n").await;
}

/// S2.12, X2: it writes nothing more when it is back.
async fn an_unresponsive_process_loses_its_thread_to_another(on: Kind) {
    let site = hanging(on).await;
    site.submit("n").await;
    let worker = site.worker();
    site.world.model.wait_for_requests(6).await;
    site.stop_between_writes(&worker).await;
    let text = cancelled(&site, "n", "0.2").await;
    assert_eq!((&text["by_force"], names(&text, &worker)), (&json!(true), true), "{text}");
    signal(&worker, Signal::SIGCONT);
    assert_cancelled(&site, "n").await;
    signal(&worker, Signal::SIGTERM);
    ended(worker).await.code(0);
}
