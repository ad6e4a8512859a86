//! `trace serve`: the read API of Jaeger over the traces in the database.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use perihelion_http::{Bounds, Server};

use crate::cli::{Error, Exit, Signals, output};
use perihelion_api as api;
use perihelion_runtime::{Metrics, open_store, trace_finder};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace serve
  perihelion trace serve --addr 127.0.0.1:0
  perihelion trace serve --ui ./jaeger-ui/build

Implements the Jaeger query API for clients such as the Jaeger UI and the Jaeger data source of Grafana. Prometheus
finds the status of threads at /metrics. With --ui, this process also serves a build of the Jaeger UI. It has no
authentication, so it only listens on loopback. Content is only shown if traces.content is set.")]
pub(super) struct Args {
    /// Loopback address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:16686")]
    addr: SocketAddr,
    /// Directory with a build of the Jaeger UI to serve
    #[arg(long, value_name = "DIR")]
    ui: Option<PathBuf>,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    if !args.addr.ip().is_loopback() {
        return Err(Error::NotLoopback(args.addr));
    }
    if let Some(directory) = args.ui.as_ref().filter(|ui| !ui.join("index.html").is_file()) {
        return Err(Error::NoJaegerUi(directory.clone()));
    }
    let signals = Signals::listen()?;
    let store = open_store(&settings).await?;
    let finder = trace_finder(Arc::clone(&store), &settings);
    let metrics = Metrics::new(&settings, Arc::clone(&store))?;
    let mut router = api::jaeger::router(finder).merge(api::metrics::router(metrics));
    if let Some(directory) = &args.ui {
        router = router.fallback_service(api::jaeger::interface(directory));
    }
    let router = api::loopback_only(router);
    let listen = |source| Error::Listen { addr: args.addr, source };
    let served = async {
        let listener = tokio::net::TcpListener::bind(args.addr).await.map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        output::note(&format!("serving traces at http://{addr}; press Ctrl-C to stop"));
        let stopped = async move { signals.stopped().await };
        let server = Server::on(listener, Bounds::default()).map_err(listen)?;
        server.serve_until(router, stopped).await;
        Ok(())
    };
    let served = served.await;
    store.close().await;
    served.map(|()| Exit::Done)
}
