//! `perihelion serve`: threads over HTTP.

use std::sync::Arc;
use std::time::Duration;

use perihelion_http::{Bounds, Server};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::output;
use super::worker::{releasing, waiting};
use super::{Error, Exit, Globals, Signals, descriptors, environment, looking, patience, plugins};
use perihelion_api::{self as api, deliver::Deliveries};
use perihelion_runtime::{Runtime, demo, is_anybody_known};
use perihelion_service::worker::Worker;
use perihelion_service::{Service, Stops};
use perihelion_settings::config::{Overrides, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Speaks the Agent Server API of LangGraph, so that its clients, useStream and agent-chat-ui work unchanged; a page for
people is at /. Any number of these processes, and of workers, may share a database: a run whose process died is gone
on with by another one, and a stream follows on there by its Last-Event-ID. Without a token only a loopback address is
listened on. The first Ctrl-C or SIGTERM leaves the runs to the others; the second ends at once.

Examples:
  perihelion serve
  perihelion serve --addr 127.0.0.1:8123
  perihelion serve --demo               bundled servers and a scripted model: no key, no network
  PERIHELION_SERVE_TOKEN=… perihelion serve --addr 0.0.0.0:8123 --database postgres://me@db/perihelion")]
pub struct Args {
    /// Address to listen on; a port alone is one on loopback; 127.0.0.1:2024 by default [env: PERIHELION_SERVE_ADDR]
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    /// Serve the demo: bundled servers, real data and a scripted model
    #[arg(long)]
    demo: bool,
    /// Show no lines for what happens
    #[arg(long, short)]
    quiet: bool,
}

impl Args {
    /// Returns the global options with those of this command.
    pub(super) fn overrides(&self, globals: &Globals) -> Overrides {
        Overrides { addr: self.addr.clone(), ..globals.overrides() }
    }
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let addr = settings.serve.addr;
    let asks = &settings.serve;
    let proves = asks.token.is_some() || asks.jwt.is_some() || asks.registration;
    let signals = Signals::listen()?;
    if !addr.ip().is_loopback() && !proves {
        let is_known = tokio::select! {
            biased;
            () = signals.stopped() => return Ok(Exit::Aborted),
            is_known = patience::opened(async || is_anybody_known(&settings).await) => is_known?,
        };
        if !is_known {
            return Err(Error::Unprotected(addr));
        }
    }
    // First, so that nothing is begun when the port is taken.
    let drain = Duration::from_secs_f64(settings.serve.drain_sec);
    let wanted = settings.serve.max_connections;
    let connections = descriptors::connections(wanted);
    if connections < wanted {
        output::note(&format!(
            "at most {connections} connections at once, in the place of {wanted}: raise the limit of open files (ulimit -n)"
        ));
    }
    let bounds = Bounds { connections, drain, ..Bounds::default() };
    let server = Server::bind(addr, bounds).await.map_err(Error::Serve)?;
    let opening = looking::shown(args.quiet, async |looks| {
        let builder =
            || Runtime::builder(settings.clone()).environment(&environment).with_progress(looks);
        if args.demo {
            builder().for_demo(demo::Options::default()).open().await
        } else {
            patience::opened(async || builder().for_workers().open().await).await
        }
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
    let plugins = plugins::keep(&runtime, "serve", args.quiet);
    let served = serve(server, &runtime, &signals, args.quiet);
    tokio::select! {
        biased;
        () = signals.aborted() => return Ok(Exit::Aborted),
        served = served => served?,
    }
    drop(plugins);
    if let Some(runtime) = Arc::into_inner(runtime) {
        tokio::select! {
            biased;
            () = signals.aborted() => return Ok(Exit::Aborted),
            () = runtime.close() => {}
        }
    }
    Ok(Exit::Done)
}

/// Serves until the first signal, and then until everything under way was left to others.
async fn serve(
    server: Server,
    runtime: &Arc<Runtime>,
    signals: &Signals,
    quiet: bool,
) -> Result<(), Error> {
    let stop: CancellationToken = signals.stop_token();
    let service = Service::open(Arc::clone(runtime), stop.clone()).await.map_err(Error::Service)?;
    let settings = &runtime.settings().serve;
    let router = api::serve::router(service.clone(), runtime.metrics()?, settings);
    if !quiet {
        output::note(&format!(
            "serving {} at http://{}",
            runtime.store().describe(),
            server.addr()
        ));
    }
    let stops = Arc::new(Stops::new(runtime.settings().store.database.expose()));
    let worker = Worker::new(Arc::clone(runtime), false, releasing(&stops, true));
    let worker = worker.with_options(waiting(&stops));
    let looking = AbortOnDropHandle::new(tokio::spawn(async move { stops.keep().await }));
    let deliveries = Deliveries::open(service.clone()).map_err(Error::Client)?;
    let (_, worked, (), ()) = tokio::join!(
        server.serve(router, stop.clone()),
        worker.run(stop.clone()),
        service.keep(),
        deliveries.keep(),
    );
    drop(looking);
    drop(deliveries);
    service.close().await;
    worked?;
    Ok(())
}
