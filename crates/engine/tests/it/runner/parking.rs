//! Nodes that come and go while threads are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::graph::{EngineError, NodeEntry, Resolver, Target};
use perihelion_engine::runner::RunResult;

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(a_thread_whose_next_node_is_gone_is_parked_and_continues_when_it_is_back,);

/// One agent that can be taken away.
struct Roster {
    world: World,
    there: AtomicBool,
}

impl Resolver<Story> for Roster {
    fn resolve(&self, name: &str) -> Option<Arc<NodeEntry<Story>>> {
        (name == "agent" && self.there.load(Ordering::Relaxed))
            .then(|| Arc::new(NodeEntry::new(self.world.speaker("agent")).then("end")))
    }
}

async fn a_thread_whose_next_node_is_gone_is_parked_and_continues_when_it_is_back(on: &Fixture) {
    let world = World::default();
    let roster = Arc::new(Roster { world: world.clone(), there: AtomicBool::new(false) });
    let graph = graph(|graph| {
        graph
            .node("a", world.speaker("a"))
            .node("end", world.speaker("end"))
            .entry("a")
            .route("a", |_| vec![Target::node("agent"), Target::node("end")])
            .resolver(roster.clone())
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    for outcome in [start(&runner, thread).await, resume(&runner, thread).await] {
        let RunResult::Failed(error @ EngineError::Missing { .. }) = outcome.result else {
            panic!()
        };
        assert_eq!(
            error.to_string(),
            "the next node no longer exists: agent; bring it back and resume the thread"
        );
        let info = on.store.info(thread).await.unwrap();
        assert_eq!((info.status, info.error), (ThreadStatus::Parked, Some(error.to_string())));
    }
    roster.there.store(true, Ordering::Relaxed);
    let outcome = resume(&runner, thread).await;
    assert!(is_done(&outcome));
    assert_eq!(lines(&outcome.state), ["input", "a", "agent", "end", "end"]);
    assert_eq!(world.count("a"), 1);
}
