//! A network that swallows packets: nobody hears that a connection is gone, and yet nobody waits for ever.

use perihelion_database as database;
use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};
use std::time::Duration;

use perihelion_engine::checkpoint::{Error, Fence, PostgresStore, Store};
use perihelion_engine::graph::node_fn;
use perihelion_engine::runner::{self, RunOptions};

use super::{
    stores,
    writer::{TTL, Writer, encoded, new_thread},
};
use crate::runner::world::{Gate, World, graph, input, say};
use perihelion_test_database::proxy::{self, Piece, Way};

/// What the network swallows.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Hole {
    Nothing,
    /// The next statement, and its connection.
    TheStatement,
    /// The next reply, and its connection.
    TheReply,
    /// Whatever is said, on new connections too.
    All,
}

struct Network {
    hole: Arc<AtomicU8>,
    store: Arc<dyn Store>,
}

impl Network {
    /// A store that gives a connection up after a second of silence.
    async fn new() -> Self {
        let on = stores::postgres().await;
        let hole = Arc::new(AtomicU8::new(Hole::Nothing as u8));
        let now = Arc::clone(&hole);
        let swallows = move |piece: Piece| {
            let once = match piece.way {
                Way::Statement => Hole::TheStatement,
                Way::Reply => Hole::TheReply,
            };
            let once = once as u8;
            let nothing = Hole::Nothing as u8;
            now.load(Ordering::SeqCst) == Hole::All as u8
                || now.compare_exchange(once, nothing, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let url = proxy::silent_before(on.url.as_deref().unwrap(), swallows).await;
        let store = PostgresStore::open_within(&url, Duration::from_secs(1)).await.unwrap();
        Self { hole, store: Arc::new(store) }
    }

    fn dig(&self, hole: Hole) {
        self.hole.store(hole as u8, Ordering::SeqCst);
    }
}

/// S1.03
#[tokio::test]
async fn a_commit_with_a_lost_request_or_reply_happens_once_and_the_writer_continues() {
    let network = Network::new().await;
    let mut writer = Writer::with_steps(&network.store, 1).await;
    for hole in [Hole::TheStatement, Hole::TheReply] {
        network.dig(hole);
        writer.steps(2).await;
    }
    let steps = network.store.load(writer.thread, None).await.unwrap().steps;
    assert_eq!(steps.iter().map(|step| step.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn no_method_waits_forever_for_a_silent_connection() {
    let network = Network::new().await;
    let store = &network.store;
    let mut writer = Writer::with_steps(store, 2).await;
    let thread = writer.thread;
    for method in 0..9 {
        network.dig(Hole::TheReply);
        match method {
            0 => drop(store.info(thread).await.unwrap()),
            1 => drop(store.load(thread, None).await.unwrap()),
            2 => drop(store.history(thread, None, 9).await.unwrap()),
            3 => store.renew(Fence::new(thread, writer.fence), TTL).await.unwrap(),
            4 => drop(store.effects(thread, None).await.unwrap()),
            5 => writer.steps(1).await,
            // These begin with a sign of life, which is what is swallowed.
            6 => drop(store.export(thread).await.unwrap()),
            7 => drop(store.create(new_thread()).await.unwrap()),
            _ => store.delete(thread).await.unwrap(),
        }
        let dug = network.hole.load(Ordering::SeqCst);
        assert_eq!(dug, Hole::Nothing as u8, "something was swallowed: {method}");
    }
}

#[tokio::test]
async fn a_database_that_is_silent_altogether_is_unreachable_until_it_is_back() {
    let network = Network::new().await;
    let mut writer = Writer::with_steps(&network.store, 1).await;
    let commit = writer.next(encoded(&serde_json::json!("late")));
    network.dig(Hole::All);
    let error = writer.commit(&commit).await.unwrap_err();
    assert!(
        matches!(error, Error::Database(database::Error::Unreachable { .. })) && error.is_passing(),
        "{error:?}"
    );
    assert!(error.to_string().contains("did not answer within"), "{error}");
    network.dig(Hole::Nothing);
    writer.commit(&commit).await.unwrap();
}

#[tokio::test]
async fn a_stopped_run_ends_even_if_its_database_is_silent() {
    let network = Network::new().await;
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let graph = graph(|graph| {
        let slow = node_fn(move |_| {
            let gate = gate_of_node.clone();
            async move {
                gate.pass().await;
                Ok(say("slow"))
            }
        });
        graph.node("a", slow).node("b", world.speaker("b")).entry("a").edge("a", "b")
    });
    let runner = crate::runner::world::runner(&graph, &network.store);
    let thread = world.thread(&runner).await;
    let options = RunOptions::default();
    let stop = options.cancel.clone();
    let run = runner.start(thread, input(), options);
    let swallow = async {
        gate.reached().await;
        network.dig(Hole::All);
        gate.open();
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(run, swallow);
    assert!(matches!(&ended, Err(runner::Error::Store(error)) if error.is_passing()));
    network.dig(Hole::Nothing);
    let resumed = crate::runner::world::resume(&runner, thread).await;
    assert!(crate::runner::world::is_done(&resumed));
}
