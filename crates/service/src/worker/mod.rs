//! The worker: resumes threads of the same database that were queued or lost their process.
//!
//! Enter at [`Worker::run`]. Invariants: it runs at most as many threads at once as the settings permit. A worker that
//! must stop hands over its threads before it ends, and claims no others. Deliberately absent: a list of other workers;
//! the lease of a thread names its holder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_runtime::{RunReport, Runtime};
use perihelion_star::GraphState;

use crate::{Error, Result, Service};

/// How long a worker waits after the database failed it, or leaves a thread alone on which it did.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest wait for a database that fails again and again.
const LONGEST: Duration = Duration::from_secs(8);

/// How long a worker skips a thread that cannot be resumed for a reason of its own.
const ASIDE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub enum WorkerEvent<'a> {
    /// A thread is checked, and resumed if it has no holder.
    Called(ThreadId),
    /// A run ended, or was handed over.
    Ended(&'a RunReport),
    /// The check found no work, or another process does it.
    Idle(ThreadId),
    /// A thread could not be resumed; it is left alone for a while.
    Failed(ThreadId, &'a Error),
    /// The database failed; the worker tries again.
    Waiting(&'a Error),
    /// It must stop while it drives this number of threads.
    Stopping(usize),
}

pub type Listener = Arc<dyn Fn(WorkerEvent<'_>) + Send + Sync>;

/// Makes the options of a run on a thread from those of the settings.
pub type Options =
    Arc<dyn Fn(ThreadId, RunOptions<GraphState>) -> RunOptions<GraphState> + Send + Sync>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    pub driven: u64,
    /// Threads that it could not continue with, and that still wait.
    pub left: usize,
}

/// How the attempt at one thread ended: the runs that it made, or when to try again, if that may help.
type Attempt = (ThreadId, Result<u64, Option<Instant>>);

pub struct Worker {
    runtime: Arc<Runtime>,
    concurrency: usize,
    drains: bool,
    listener: Listener,
    options: Options,
}

impl Worker {
    /// Makes a worker; one that `drains` ends when no work is left.
    pub fn new(runtime: Arc<Runtime>, drains: bool, listener: Listener) -> Self {
        let concurrency = runtime.settings().worker.concurrency;
        Self { runtime, concurrency, drains, listener, options: Arc::new(|_, options| options) }
    }

    /// Changes the options of each run, to listen to its events above all.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Works until it is stopped, or until no thread is left that it can run.
    ///
    /// After a stop its runs finish their active calls, and their threads are queued for other workers.
    ///
    /// # Errors
    /// [`Error`] when the database's address cannot be read; later failures are waited out.
    pub async fn run(&self, stop: CancellationToken) -> Result<Worked> {
        let dispatcher = self.runtime.dispatcher(self.drains)?;
        let service = match Service::open(Arc::clone(&self.runtime), stop.clone()) {
            Err(Error::NoDatabase) => None,
            opened => Some(opened?),
        };
        let mut runs = JoinSet::new();
        let mut account = Account::default();
        let mut patience = PATIENCE;
        while !stop.is_cancelled() {
            if runs.len() >= self.concurrency {
                tokio::select! {
                    () = stop.cancelled() => break,
                    Some(ended) = runs.join_next() => account.add(ended),
                }
                continue;
            }
            // Read before the search, which finds each thread whose pause has ended by then, unless another process
            // continued it.
            let has_hope = account.has_hope();
            let next = tokio::select! {
                () = stop.cancelled() => break,
                next = dispatcher.next() => next,
            };
            if next.is_ok() {
                patience = PATIENCE;
            }
            match next {
                Ok(Some(wake)) => {
                    let runtime = Arc::clone(&self.runtime);
                    let service = service.clone();
                    let listener = self.listener.clone();
                    let options = RunOptions {
                        cancel: stop.child_token(),
                        hands_over: true,
                        max_crashes: Some(runtime.settings().worker.max_crashes),
                        ..(self.options)(wake.thread, runtime.run_options())
                    };
                    let dispatcher = Arc::clone(&dispatcher);
                    runs.spawn(async move {
                        let driving = async {
                            listener(WorkerEvent::Called(wake.thread));
                            let options = match &service {
                                Some(service) => service.continued(wake.thread, options).await?,
                                None => options,
                            };
                            drive(&runtime, wake.thread, options, &listener).await
                        };
                        let ended = driving.await.map_err(|error| {
                            listener(WorkerEvent::Failed(wake.thread, &error));
                            let pause = if error.is_lasting() { ASIDE } else { PATIENCE };
                            dispatcher.set_aside(&wake, pause);
                            error.may_pass().then(|| clock::monotonic() + pause)
                        });
                        (wake.thread, ended)
                    });
                }
                Ok(None) if self.drains && runs.is_empty() && !has_hope => {
                    // The search did not find those whose pause is over, so another process continued them.
                    account.failed.retain(|_, again| again.is_none());
                    break;
                }
                Ok(None) => {
                    tokio::select! {
                        () = stop.cancelled() => break,
                        Some(ended) = runs.join_next() => account.add(ended),
                        () = dispatcher.called() => {}
                    }
                }
                Err(error) => {
                    (self.listener)(WorkerEvent::Waiting(&error.into()));
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = clock::sleep(patience) => patience = (patience * 2).min(LONGEST),
                    }
                }
            }
        }
        if stop.is_cancelled() {
            (self.listener)(WorkerEvent::Stopping(runs.len()));
        }
        while let Some(ended) = runs.join_next().await {
            account.add(ended);
        }
        dispatcher.close().await;
        Ok(Worked { driven: account.driven, left: account.failed.len() })
    }
}

impl Service {
    /// Returns the options with which a worker continues a thread: with the order of its active run, if it has one.
    async fn continued(
        &self,
        thread: ThreadId,
        options: RunOptions<GraphState>,
    ) -> Result<RunOptions<GraphState>> {
        let Some(run) = self.kept().active_run(thread.0).await? else { return Ok(options) };
        if run.cancel.is_some() {
            options.withdrawn.cancel();
        }
        Ok(self.driving_for(&run.tenant).ordered(&run, options).await?.options)
    }
}

/// Continues with one thread; returns how many runs that made.
async fn drive(
    runtime: &Runtime,
    thread: ThreadId,
    options: RunOptions<GraphState>,
    listener: &Listener,
) -> Result<u64> {
    Ok(match runtime.wake(thread, options).await? {
        Some(report) => {
            listener(WorkerEvent::Ended(&report));
            1
        }
        None => {
            listener(WorkerEvent::Idle(thread));
            0
        }
    })
}

#[derive(Default)]
struct Account {
    driven: u64,
    /// Threads that could not be continued, and when to try again.
    failed: BTreeMap<ThreadId, Option<Instant>>,
}

impl Account {
    fn add(&mut self, ended: Result<Attempt, JoinError>) {
        match ended {
            Ok((thread, Ok(runs))) => {
                self.driven += runs;
                self.failed.remove(&thread);
            }
            Ok((thread, Err(again))) => {
                self.failed.insert(thread, again);
            }
            Err(error) => {
                tracing::error!(%error, "a run of this worker panicked; another run continues its thread");
            }
        }
    }

    fn has_hope(&self) -> bool {
        let now = clock::monotonic();
        self.failed.values().flatten().any(|again| now < *again)
    }
}
