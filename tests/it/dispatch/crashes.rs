//! Processes that die or stop in the middle of a run: another continues, and nothing happens twice.

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};

use super::processes::{Kind, on_both_databases, site};
use crate::cli::world::{first, noting, signal};

on_both_databases!(
    a_worker_that_was_killed_is_replaced_by_another,
    a_run_on_a_terminal_that_was_killed_is_resumed_by_a_worker,
    a_suspended_worker_loses_its_thread_and_survives,
);

/// Supervisor, agent twice, reflector, supervisor, QA: then QA hangs in its first call.
const CALLS: usize = 6;

fn hanging() -> Script {
    first(Rule::new(Reply::hang()).role(Role::Qa).times(1), noting())
}

/// X4
async fn a_worker_that_was_killed_is_replaced_by_another(on: Kind) {
    let site = site(on, hanging()).await;
    site.submit("n").await;
    let mut worker = site.worker();
    site.world.model.wait_for_requests(CALLS).await;
    let heir = site.worker();
    worker.kill().await.unwrap();
    site.until("n", "done").await;
    assert_eq!(site.world.read("notes.jsonl").lines().count(), 1);
    assert_eq!(
        site.world.model.requests().len(),
        CALLS + 1,
        "only the call that hung was repeated"
    );
    site.stop(heir).await;
}

async fn a_run_on_a_terminal_that_was_killed_is_resumed_by_a_worker(on: Kind) {
    let site = site(on, hanging()).await;
    let worker = site.worker();
    let mut run = site.world.start(&["run", "Note it", "--thread", "n"]);
    site.world.model.wait_for_requests(CALLS).await;
    run.kill().await.unwrap();
    site.until("n", "done").await;
    assert_eq!(site.world.read("notes.jsonl").lines().count(), 1);
    let text = site.stop(worker).await;
    assert!(text.contains(": done; "), "{text}");
}

async fn a_suspended_worker_loses_its_thread_and_survives(on: Kind) {
    let mut site = site(on, hanging()).await;
    site.world.set("PERIHELION_STORE_LEASE_SEC", "2");
    site.submit("n").await;
    let zombie = site.worker();
    site.world.model.wait_for_requests(CALLS).await;
    let heir = site.worker();
    site.stop_between_writes(&zombie).await;
    // The heir waits for the lease: the one that stands still is not dead.
    site.until("n", "done").await;
    let heir_output = site.stop(heir).await;
    assert!(heir_output.contains(": done; "), "{heir_output}");
    signal(&zombie, Signal::SIGCONT);
    // It lives on as a worker, and what it still held it cannot write.
    let thread = site.submit("second").await;
    site.until("second", "done").await;
    let text = site.stop(zombie).await;
    assert!(text.contains(&format!("{thread}: done")), "{text}");
    assert!(text.contains("lost the thread"), "{text}");
    assert_eq!(site.world.read("notes.jsonl").lines().count(), 2, "one for each thread");
}
