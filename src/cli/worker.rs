//! `perihelion worker`: runs queued and crashed threads of a database.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::output::{self, one_line};
use super::{Error, Exit, Globals, Result, Signals, graphs, opening};
use perihelion_api as api;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::RunOptions;
use perihelion_http::{Bounds, Server};
use perihelion_runtime::{RunReport, RunStatusView, Runtime};
use perihelion_service::Stops;
use perihelion_service::kept::Kept;
use perihelion_service::worker::{Listener, Options, Worked, Worker, WorkerEvent};
use perihelion_settings::config::{Overrides, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs queued threads (`perihelion run --detach`, answers to open questions) and threads whose process \
died. Several workers can share a database. Each thread runs in one worker at a time. Press Ctrl-C once, \
or send SIGTERM, to finish the current steps and hand the threads over. Press it again to stop immediately.

Examples:
  perihelion worker --database postgres://db/perihelion
  perihelion worker --concurrency 16
  perihelion worker --metrics 9464      Serve http://127.0.0.1:9464/metrics for Prometheus
  perihelion worker --drain             Stop when no work is left, for cron and tests")]
pub struct Args {
    /// Maximum number of threads to run at the same time. Defaults to 4 [env: PERIHELION_WORKER_CONCURRENCY]
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,
    /// Serve /metrics, /healthz and /readyz at this address. A port without a host means loopback
    /// [env: PERIHELION_WORKER_METRICS]
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<String>,
    /// Stop when no thread is left to run
    #[arg(long)]
    drain: bool,
    /// Continue threads of the graphs of a langgraph.json too
    #[arg(long, value_name = "FILE")]
    graphs: Option<PathBuf>,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
}

impl Args {
    pub(super) fn overrides(&self, globals: &Globals) -> Overrides {
        Overrides {
            concurrency: self.concurrency,
            metrics: self.metrics.clone(),
            ..globals.overrides()
        }
    }
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let signals = Signals::listen()?;
    // First, so that nothing is begun when the port is taken.
    let bound = match settings.worker.metrics {
        Some(addr) => {
            let bound = TcpListener::bind(addr).await;
            Some(bound.map_err(|source| Error::ServeMetrics { addr, source })?)
        }
        None => None,
    };
    let hosted = graphs::host(args.graphs.as_deref(), &settings).await?;
    let opening = opening::for_workers(&settings, args.quiet);
    let runtime = Arc::new(signals.unless_stopped(opening).await??);
    opening::warn_of_servers(&runtime);
    if !args.quiet {
        output::note(&format!(
            "working on {}; concurrent threads: {}",
            runtime.store().describe(),
            runtime.settings().worker.concurrency
        ));
    }
    let _serving = bound.map(|bound| serve(bound, &runtime, args.quiet)).transpose()?;
    let plugins = opening::keep_servers(&runtime, "worker", args.quiet);
    let (worker, looking) = stoppable(&runtime, args.drain, args.quiet);
    let working = worker.run(signals.stop_token());
    let worked = signals.unless_aborted(working).await?;
    drop(worker);
    drop(looking);
    drop(plugins);
    drop(hosted);
    if let Some(runtime) = Arc::into_inner(runtime) {
        signals.unless_aborted(runtime.close()).await?;
    }
    let Worked { driven, left } = worked.map_err(Error::Service)?;
    if !args.quiet {
        output::note(&format!("stopped; completed runs: {driven}"));
    }
    if args.drain && left > 0 {
        return Err(Error::NotContinued(left));
    }
    Ok(Exit::Done)
}

/// Returns a worker, and the task that lets other processes stop its runs.
pub(super) fn stoppable(
    runtime: &Arc<Runtime>,
    drain: bool,
    quiet: bool,
) -> (Worker, AbortOnDropHandle<()>) {
    let stops = Arc::new(Stops::new(runtime.database()));
    let registered = Arc::clone(&stops);
    let options: Options = Arc::new(move |thread, options| RunOptions {
        withdrawn: registered.register(thread),
        ..options
    });
    let worker = Worker::new(Arc::clone(runtime), drain, releasing(&stops, quiet));
    let looking = tokio::spawn(async move { stops.keep().await });
    (worker.with_options(options), AbortOnDropHandle::new(looking))
}

/// Reports events of the worker, and releases threads that it no longer runs.
fn releasing(stops: &Arc<Stops>, quiet: bool) -> Listener {
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

/// Serves the worker's metrics until dropped; they contain no secrets, so every host that can connect can read them.
fn serve(listener: TcpListener, runtime: &Runtime, quiet: bool) -> Result<AbortOnDropHandle<()>> {
    let rows = runtime.database().map(|database| Kept::new(database.clone(), ""));
    let router = api::metrics::of_worker(runtime.metrics()?, runtime.readiness(), rows);
    if let Ok(addr) = listener.local_addr()
        && !quiet
    {
        output::note(&format!("serving metrics at http://{addr}/metrics"));
    }
    let is_local = listener.local_addr().is_ok_and(|addr| addr.ip().is_loopback());
    let router = if is_local { api::loopback_only(router) } else { router };
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        match Server::on(listener, Bounds::default()) {
            Ok(server) => server.serve_until(router, std::future::pending()).await,
            Err(error) => tracing::error!(%error, "cannot serve metrics"),
        }
    })))
}

fn listener(quiet: bool) -> Listener {
    let warned = Mutex::new(HashSet::new());
    Arc::new(move |reported| match reported {
        // The worker tries again and again, but warns once.
        WorkerEvent::Failed(thread, error)
            if error.is_lasting() && !is_first_warning(&warned, thread) =>
        {
            tracing::debug!(%thread, %error, "still failing");
        }
        WorkerEvent::Failed(thread, error) => output::warning(&format!("{thread}: {error}")),
        WorkerEvent::Waiting(error) => output::warning(&format!("{error}; trying again")),
        WorkerEvent::Called(thread) => tracing::debug!(%thread, "called"),
        WorkerEvent::Idle(thread) => tracing::debug!(%thread, "called, but there was no work"),
        WorkerEvent::Stopping(_) | WorkerEvent::Ended(_) if quiet => {}
        WorkerEvent::Stopping(count) => output::note(&format!(
            "stopping after the current steps; threads to hand over: {count}; press Ctrl-C again to stop now"
        )),
        WorkerEvent::Ended(report) => output::note(&line(report)),
    })
}

/// Threads that are remembered; beyond that some are warned of again.
const REMEMBERED: usize = 100_000;

fn is_first_warning(warned: &Mutex<HashSet<ThreadId>>, thread: ThreadId) -> bool {
    let mut warned = warned.lock();
    if warned.len() >= REMEMBERED {
        warned.clear();
    }
    warned.insert(thread)
}

fn line(report: &RunReport) -> String {
    let thread = &report.thread_id;
    let tokens = report.usage.total();
    let how = match report.status {
        RunStatusView::Done => "done".to_owned(),
        RunStatusView::Interrupted => "waiting for a person".to_owned(),
        RunStatusView::Queued => "handed over".to_owned(),
        RunStatusView::Stopped => "stopped".to_owned(),
        RunStatusView::Failed => {
            format!("failed: {}", one_line(report.error.as_deref().unwrap_or_default()))
        }
    };
    let steps = output::count(report.steps, "step");
    format!("{thread}: {how}; {steps}, {tokens} tokens")
}
