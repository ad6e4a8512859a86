//! `perihelion serve`: threads over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use perihelion_http::{Bounds, Server};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    Error, Exit, Globals, Result, Signals, environment, execute, graphs, opening, output, system,
    worker,
};
use crate::demo;
use perihelion_agents::kinds;
use perihelion_api::{self as api, deliver::Deliveries};
use perihelion_runtime::{DEMO_TENANT, Graphs, Runtime, is_anybody_known};
use perihelion_service::Service;
use perihelion_settings::config::{Overrides, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Implements the LangGraph Agent Server API, so LangGraph clients, useStream and agent-chat-ui work unchanged. The \
web UI is at /. Several services and workers can share a database. If a process dies, another process continues \
its runs, and clients resume their streams there with Last-Event-ID. Without authentication, the service only \
listens on loopback. Press Ctrl-C once, or send SIGTERM, to hand the runs to other processes. Press it again to \
stop immediately.

Examples:
  perihelion serve
  perihelion serve --addr 127.0.0.1:8123
  perihelion serve --demo               Bundled servers and a scripted model, without key or network
  perihelion serve --graphs langgraph.json    Graphs of LangGraph, in the Python of their project
  PERIHELION_SERVE_TOKEN=… perihelion serve --addr 0.0.0.0:8123 --database postgres://db/perihelion")]
pub struct Args {
    /// Address to listen on. A port without a host means loopback. Defaults to 127.0.0.1:2024 [env: PERIHELION_SERVE_ADDR]
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    /// Serve the demo, with bundled servers, real data and a scripted model
    #[arg(long)]
    demo: bool,
    /// Serve the graphs of a langgraph.json, run by the Python of the .venv next to it, or of the active environment
    #[arg(long, value_name = "FILE", conflicts_with = "demo")]
    graphs: Option<PathBuf>,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
}

impl Args {
    pub(super) fn overrides(&self, globals: &Globals) -> Overrides {
        Overrides { addr: self.addr.clone(), ..globals.overrides() }
    }
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let has_handler = args.graphs.as_deref().map(perihelion_host::authenticates).transpose();
    let has_handler = has_handler.map_err(Error::Graphs)? == Some(true);
    let signals = Signals::listen()?;
    signals.unless_stopped(check_address(&settings, has_handler)).await??;
    // First, so that nothing is begun when the port is taken.
    let drain = Duration::from_secs_f64(settings.serve.drain_sec);
    let wanted = settings.serve.max_connections;
    let connections = system::connections(wanted);
    if connections < wanted {
        output::note(&format!(
            "the limit of open files allows {connections} connections instead of {wanted}; raise it with ulimit -n"
        ));
    }
    let bounds = Bounds { connections, drain, ..Bounds::default() };
    let server = Server::bind(settings.serve.addr, bounds).await.map_err(Error::Serve)?;
    let hosted = graphs::host(args.graphs.as_deref(), &settings).await?;
    let opening = async {
        if !args.demo {
            return Ok::<_, Error>(opening::for_workers(&settings, args.quiet).await?);
        }
        let stage = demo::set(&demo::Options::default()).await?;
        let opened = opening::shown(args.quiet, async |looks| {
            opening::builder(settings.clone(), looks).on_stage(stage).open().await
        });
        let runtime = opened.await?;
        demo::add_team(&runtime).await?;
        Ok(runtime)
    };
    let runtime = Arc::new(signals.unless_stopped(opening).await??);
    opening::warn_of_servers(&runtime);
    let plugins = opening::keep_servers(&runtime, "serve", args.quiet);
    if !args.quiet {
        let place = runtime.store().describe();
        output::note(&format!("serving {place} at http://{}", server.addr()));
        if args.demo {
            output::note(&format!(
                "the demo has its own tenant: pass --tenant {DEMO_TENANT} to `perihelion keys` and `perihelion users`"
            ));
        }
    }
    let served = until_stopped(server, &runtime, signals.stop_token());
    signals.unless_aborted(served).await??;
    drop(plugins);
    drop(hosted);
    match Arc::into_inner(runtime) {
        Some(runtime) => execute::finish(runtime, Ok(Exit::Done), &signals).await,
        None => Ok(Exit::Done),
    }
}

/// Refuses an address that others can reach, unless callers must prove who they are.
async fn check_address(settings: &Settings, has_handler: bool) -> Result<()> {
    let serve = &settings.serve;
    let is_proved = serve.authenticates() || serve.registration || has_handler;
    if serve.addr.ip().is_loopback() || is_proved {
        return Ok(());
    }
    let is_known = opening::patient(async || is_anybody_known(settings).await).await?;
    if is_known { Ok(()) } else { Err(Error::Unprotected(serve.addr)) }
}

/// Serves until it is stopped, and then until all active work was handed over.
async fn until_stopped(
    server: Server,
    runtime: &Arc<Runtime>,
    stop: CancellationToken,
) -> Result<()> {
    let service = Service::open(Arc::clone(runtime), stop.clone()).map_err(Error::Service)?;
    let settings = &runtime.settings().serve;
    let router = api::router(service.clone(), runtime.metrics()?, settings);
    let (worker, looking) = worker::stoppable(runtime, false, true);
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
    worked.map(drop).map_err(Error::Service)
}

pub struct Serving {
    addr: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

impl Serving {
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Waits until it ends; without a stop, only an error ends it.
    pub async fn wait(self) -> Result<()> {
        self.task.await.unwrap_or_else(|error| Err(Error::Ended(error)))
    }

    /// Ends it, once everything under way was left to other processes.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.wait().await
    }
}

/// Serves graphs at the address of the settings, which can have the port 0, in the background of the program.
///
/// # Errors
/// [`Error`] if the address is in use, or open to others without authentication, or the runtime cannot be opened.
pub async fn start(graphs: Graphs, settings: Settings) -> Result<Serving> {
    check_address(&settings, false).await?;
    let bound = Server::bind(settings.serve.addr, Bounds::default()).await;
    let server = bound.map_err(Error::Serve)?;
    let addr = server.addr();
    let builder = Runtime::builder(settings, kinds()).environment(&environment).serving(graphs);
    let runtime = Arc::new(builder.for_workers().open().await?);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let served = until_stopped(server, &runtime, stopped).await;
        if let Some(runtime) = Arc::into_inner(runtime) {
            runtime.close().await;
        }
        served
    });
    Ok(Serving { addr, stop, task })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_to_others(directory: &tempfile::TempDir, oidc: Option<&str>) -> Settings {
        let overrides = Overrides {
            addr: Some("0.0.0.0:0".to_owned()),
            database: Some(format!("sqlite:{}", directory.path().join("t.db").display())),
            ..Overrides::default()
        };
        let env = |name: &str| oidc.filter(|_| name == "PERIHELION_SERVE_OIDC").map(str::to_owned);
        Settings::load(overrides, None, &env).unwrap()
    }

    #[tokio::test]
    async fn an_address_that_others_can_reach_needs_authentication() {
        let directory = tempfile::tempdir().unwrap();
        let refused = start(Graphs::new(), open_to_others(&directory, None)).await;
        assert!(matches!(refused, Err(Error::Unprotected(_))));
        let provider = r#"{ "issuer": "https://id.example", "client_id": "p", "public_url": "https://p.example" }"#;
        check_address(&open_to_others(&directory, Some(provider)), false).await.unwrap();
    }
}
