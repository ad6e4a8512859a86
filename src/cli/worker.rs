//! `perihelion worker`: more hands for the same database.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::output::{self, one_line};
use super::{Error, Exit, Globals, Signals, environment, looking, patience, plugins};
use perihelion_http::{Bounds, Server};

use perihelion_api as api;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_runtime::{RunReport, RunStatusView, Runtime};
use perihelion_service::Stops;
use perihelion_service::worker::{Listener, Options, Worker, WorkerEvent};
use perihelion_settings::config::{Overrides, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Resumes threads that were handed to the workers (`perihelion run --detach`, an answer to an open
question) and with those whose process died. Any number of workers may share a database; a thread is
driven by one at a time. The first Ctrl-C or SIGTERM lets the steps under way finish and hands the
threads over; the second ends at once.

Examples:
  perihelion worker --database postgres://me@db/perihelion
  perihelion worker --concurrency 16
  perihelion worker --metrics 9464      for Prometheus at http://127.0.0.1:9464/metrics
  perihelion worker --drain             ends when nothing is left to do: for cron and for tests")]
pub struct Args {
    /// Threads driven at the same time; by default 4 [env: PERIHELION_WORKER_CONCURRENCY]
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,
    /// Serve /metrics and /healthz at this address; a port alone is one on loopback
    /// [env: PERIHELION_WORKER_METRICS]
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<String>,
    /// End when no thread is left to continue with
    #[arg(long)]
    drain: bool,
    /// Show no lines for threads taken and ended
    #[arg(long, short)]
    quiet: bool,
}

impl Args {
    /// Returns the global options with those of this command.
    pub(super) fn overrides(&self, globals: &Globals) -> Overrides {
        Overrides {
            concurrency: self.concurrency,
            metrics: self.metrics.clone(),
            ..globals.overrides()
        }
    }
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let signals = Signals::listen()?;
    // First, so that nothing is begun when the port is taken.
    let bound = match settings.worker.metrics {
        Some(addr) => Some(listen(addr).await?),
        None => None,
    };
    let opening = looking::shown(args.quiet, async |looks| {
        let builder =
            || Runtime::builder(settings.clone()).environment(&environment).with_progress(looks);
        patience::opened(async || builder().for_workers().open().await).await
    });
    let opened = tokio::select! {
        biased;
        () = signals.stopped() => return Ok(Exit::Aborted),
        opened = opening => opened,
    };
    let runtime = Arc::new(opened?);
    for problem in runtime.agents().problems().iter() {
        output::warning(&format!("MCP server {}: {}", problem.server, problem.problem));
    }
    if !args.quiet {
        output::note(&format!(
            "working on {}; threads at once: {}",
            runtime.store().describe(),
            runtime.settings().worker.concurrency
        ));
    }
    let _serving = match bound {
        Some(bound) => Some(serve(bound, &runtime, args.quiet)?),
        None => None,
    };
    let plugins = plugins::keep(&runtime, "worker", args.quiet);
    let stops = Arc::new(Stops::new(runtime.settings().store.database.expose()));
    let worker = Worker::new(Arc::clone(&runtime), args.drain, releasing(&stops, args.quiet));
    let worker = worker.with_options(waiting(&stops));
    let looking = AbortOnDropHandle::new(tokio::spawn(async move { stops.keep().await }));
    let worked = tokio::select! {
        biased;
        () = signals.aborted() => return Ok(Exit::Aborted),
        worked = worker.run(signals.stop_token()) => worked,
    };
    drop(worker);
    drop(looking);
    drop(plugins);
    if let Some(runtime) = Arc::into_inner(runtime) {
        tokio::select! {
            biased;
            () = signals.aborted() => return Ok(Exit::Aborted),
            () = runtime.close() => {}
        }
    }
    let driven = worked?;
    if !args.quiet {
        output::note(&format!("ended; runs driven: {driven}"));
    }
    Ok(Exit::Done)
}

/// Has each run end for good when somebody asks the one who holds its thread.
pub(super) fn waiting(stops: &Arc<Stops>) -> Options {
    let stops = Arc::clone(stops);
    Arc::new(move |thread, options| RunOptions { withdrawn: stops.register(thread), ..options })
}

/// Tells what the worker does, and forgets threads that it holds no longer.
pub(super) fn releasing(stops: &Arc<Stops>, quiet: bool) -> Listener {
    let stops = Arc::clone(stops);
    let reported = listener(quiet);
    Arc::new(move |event| {
        match &event {
            WorkerEvent::Ended(report) => {
                if let Ok(thread) = report.thread_id.parse() {
                    stops.release(thread);
                }
            }
            WorkerEvent::Idle(thread) | WorkerEvent::Failed(thread, _) => stops.release(*thread),
            _ => {}
        }
        reported(event);
    })
}

async fn listen(addr: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(addr).await.map_err(|source| Error::ServeMetrics { addr, source })
}

/// Serves the worker's metrics until dropped; beyond loopback to the one who asks, for there are no secrets in them.
fn serve(
    listener: TcpListener,
    runtime: &Runtime,
    quiet: bool,
) -> Result<AbortOnDropHandle<()>, Error> {
    let router = api::metrics::router(runtime.metrics()?);
    if let Ok(addr) = listener.local_addr()
        && !quiet
    {
        output::note(&format!("metrics are served at http://{addr}/metrics"));
    }
    let is_local = listener.local_addr().is_ok_and(|addr| addr.ip().is_loopback());
    let router = if is_local { api::loopback_only(router) } else { router };
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        match Server::on(listener, Bounds::default()) {
            Ok(server) => server.serve_until(router, std::future::pending()).await,
            Err(error) => tracing::error!(%error, "metrics are not served"),
        }
    })))
}

fn listener(quiet: bool) -> Listener {
    let warned = Mutex::new(HashSet::new());
    Arc::new(move |reported| match reported {
        // It is tried again and again; what is in the way is said once.
        WorkerEvent::Failed(thread, error)
            if error.is_lasting() && !is_first_warning(&warned, thread) =>
        {
            tracing::debug!(%thread, %error, "still in the way");
        }
        WorkerEvent::Failed(thread, error) => output::warning(&format!("{thread}: {error}")),
        WorkerEvent::Waiting(error) => output::warning(&format!("{error}; trying again")),
        WorkerEvent::Called(thread) => tracing::debug!(%thread, "called"),
        WorkerEvent::Idle(thread) => tracing::debug!(%thread, "called in vain"),
        WorkerEvent::Stopping(_) | WorkerEvent::Ended(_) if quiet => {}
        WorkerEvent::Stopping(count) => output::note(&format!(
            "stopping; threads to be handed over: {count}; once more ends it at once"
        )),
        WorkerEvent::Ended(report) => output::note(&line(report)),
    })
}

/// Threads that are remembered; beyond that some are warned of again.
const REMEMBERED: usize = 100_000;

fn is_first_warning(warned: &Mutex<HashSet<ThreadId>>, thread: ThreadId) -> bool {
    let mut warned = warned.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.len() >= REMEMBERED {
        warned.clear();
    }
    warned.insert(thread)
}

/// Says in one line how a run ended.
fn line(report: &RunReport) -> String {
    let thread = &report.thread_id;
    let tokens = report.usage.input_tokens + report.usage.output_tokens;
    let how = match report.status {
        RunStatusView::Done => "done".to_owned(),
        RunStatusView::Interrupted => "waits for a person".to_owned(),
        RunStatusView::Queued => "handed over".to_owned(),
        RunStatusView::Failed => {
            format!("failed: {}", one_line(report.error.as_deref().unwrap_or_default()))
        }
    };
    format!("{thread}: {how}; steps: {}, tokens: {tokens}", report.steps)
}
