//! Processes that die during a run: anyone who listens elsewhere hears each step once, to the end.

use futures::StreamExt as _;
use perihelion::bus;
use perihelion::checkpoint;
use perihelion::ids::ThreadId;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::heard::{DAY, has_no_gap, kind, steps, until_ended};
use crate::cli::world::{first, noting};
use crate::dispatch::processes::{Kind, Site, on_both_databases, site};

on_both_databases!(
    events_of_a_run_with_a_killed_worker_arrive_once_and_complete,
    a_follower_of_a_run_sees_the_same_events_as_its_process,
);

/// Supervisor, agent twice, reflector, supervisor, QA: then QA hangs in its first call.
const CALLS: usize = 6;

fn hanging() -> Script {
    first(Rule::new(Reply::hang()).role(Role::Qa).times(1), noting())
}

fn url(site: &Site) -> String {
    let file = site.world.path("data/perihelion/perihelion.db");
    site.database().map_or_else(|| format!("sqlite:{}", file.display()), str::to_owned)
}

/// S2.12
async fn events_of_a_run_with_a_killed_worker_arrive_once_and_complete(on: Kind) {
    let site = site(on, hanging()).await;
    let thread: ThreadId = site.submit("n").await.parse().unwrap();
    let url = url(&site);
    let store = checkpoint::open(&url).await.unwrap();
    let bus = bus::open(&url, store, DAY);
    let mut heard = bus.subscribe(thread, 0);
    let mut worker = site.worker();
    site.world.model.wait_for_requests(CALLS).await;
    let mut events = Vec::new();
    while events.last().is_none_or(|one: &bus::ThreadEvent| one.event["node"] != "qa") {
        events.push(heard.next().await.unwrap().unwrap());
    }
    let heir = site.worker();
    worker.kill().await.unwrap();
    events.extend(until_ended(&mut heard, "done").await);
    has_no_gap(&events);
    assert_eq!(events[0].id, 1);
    let head = bus.store().info(thread).await.unwrap().head;
    assert_eq!(steps(&events), (1..=head).collect::<Vec<_>>(), "each step once");
    let of = |name: &str| events.iter().filter(|one| kind(one) == name).count();
    assert_eq!(
        (of("step_restarted"), of("run_ended")),
        (1, 1),
        "the one that was killed had no end"
    );
    let runs: std::collections::BTreeSet<_> = events.iter().map(|one| one.run).collect();
    assert_eq!(runs.len(), 2);
    let again = events.iter().position(|one| kind(one) == "step_restarted").unwrap();
    let answer: String = events[again..]
        .iter()
        .filter(|one| one.event["mode"] == "messages")
        .filter_map(|one| one.event["payload"]["text"].as_str())
        .collect();
    assert_eq!(answer, "It is noted.");
    site.stop(heir).await;
    bus.close().await;
    bus.store().close().await;
}

/// S2.12
async fn a_follower_of_a_run_sees_the_same_events_as_its_process(on: Kind) {
    let site = site(on, hanging()).await;
    site.submit("n").await;
    let mut worker = site.worker();
    site.world.model.wait_for_requests(CALLS).await;
    let mut follower = site.world.start(&["resume", "n"]);
    let mut output = BufReader::new(follower.stderr.take().unwrap()).lines();
    let mut shown = Vec::new();
    // The tool was called by the worker, before anybody followed it.
    while !shown.iter().any(|line: &String| line.contains("qa: writing the answer")) {
        let line = output.next_line().await.unwrap();
        shown.push(line.unwrap_or_else(|| panic!("it ended early: {shown:#?}")));
    }
    worker.kill().await.unwrap();
    while let Some(line) = output.next_line().await.unwrap() {
        shown.push(line);
    }
    let ended = follower.wait_with_output().await.unwrap();
    assert_eq!(ended.status.code(), Some(0), "{shown:#?}");
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "It is noted.\n");
    let shown = shown.join("\n");
    for words in [
        "supervisor: as scripted",
        "calls notes.append_note",
        "review 1 of 3: APPROVED",
        "done in ",
    ] {
        assert_eq!(shown.matches(words).count().min(1), 1, "{words} in {shown}");
    }
    assert_eq!(shown.matches("calls notes.append_note").count(), 1, "{shown}");
}
