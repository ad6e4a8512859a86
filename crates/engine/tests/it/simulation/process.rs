//! A process: one call of the real runner, polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use perihelion_engine::checkpoint::{StateCache, Store};
use perihelion_engine::graph::Limits;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Durability, Error, RunOptions, RunOutcome, Runner};
use tokio_util::sync::CancellationToken;

use super::sim::{Life, Sim};
use super::tale::{Tale, graph, input};
use super::watched::Watched;

type Outcome = Result<RunOutcome<Tale>, Error>;

/// Says that somebody has something to do.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a client asks of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Call {
    Start { turn: usize },
    Resume,
}

pub struct Process {
    pub number: usize,
    pub is_paused: bool,
    pub cancel: CancellationToken,
    flag: Arc<Flag>,
    waker: Waker,
    future: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

impl Process {
    /// Starts a process on the thread; it has done nothing yet.
    pub fn new(
        sim: &Arc<Sim>,
        truth: &Arc<dyn Store>,
        thread: ThreadId,
        call: Call,
        durability: Durability,
    ) -> Self {
        let number = {
            let mut board = sim.board();
            // An input counts once: anyone who gives it takes the thread before anybody else moves.
            let is_quick = matches!(call, Call::Start { .. });
            board.lives.push(Life { is_quick, ..Life::default() });
            board.lives.len() - 1
        };
        let runner = runner(sim, truth, number);
        let cancel = CancellationToken::new();
        let limits = Limits { max_steps: sim.plan.max_steps, max_parallel: sim.plan.max_parallel };
        let options =
            RunOptions { durability, limits, cancel: cancel.clone(), ..RunOptions::default() };
        sim.tell(|| format!("{number}: {call:?} ({durability:?})"));
        let future = Box::pin(async move {
            match call {
                Call::Start { turn } => runner.start(thread, input(turn), options).await,
                Call::Resume => runner.resume(thread, options).await,
            }
        });
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        Self { number, is_paused: false, cancel, flag, waker, future }
    }

    /// Returns whether it has something to do.
    pub fn is_awake(&self) -> bool {
        self.flag.0.load(Ordering::Relaxed)
    }

    /// Lets it run while it has something to do; says whether it had, and how it ended if it did.
    pub fn advance(&mut self) -> (bool, Option<Outcome>) {
        let mut moved = false;
        while self.flag.0.swap(false, Ordering::Relaxed) {
            moved = true;
            let mut context = Context::from_waker(&self.waker);
            // The scheduler is fair already; the runtime's own budget would only hide who waits.
            let future = tokio::task::coop::unconstrained(self.future.as_mut());
            if let Poll::Ready(outcome) = std::pin::pin!(future).poll(&mut context) {
                return (true, Some(outcome));
            }
        }
        (moved, None)
    }
}

/// Makes the real runner on one process's view of the store.
pub fn runner(sim: &Arc<Sim>, truth: &Arc<dyn Store>, process: usize) -> Runner<Tale> {
    let sim = Arc::clone(sim);
    let truth = Arc::clone(truth);
    let graph = graph(&sim, process);
    Runner::new(graph, Arc::new(Watched { sim, process, truth, states: StateCache::default() }))
}
