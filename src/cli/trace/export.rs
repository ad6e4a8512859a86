//! `trace export` and `trace serve`: traces for collectors and other viewers, however old they are.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::{Error, Exit, Result, Signals, output};
use perihelion_api as api;
use perihelion_http::{Bounds, Server};
use perihelion_runtime::{
    Metrics, Replayed, Replayer, Threads, database_exists, open_store, trace_finder,
};
use perihelion_settings::config::{Invalid, Settings, check_collector};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace export weekly-report --to otlp --endpoint http://localhost:4318
  PERIHELION_TRACES_CONTENT=true perihelion trace export weekly-report monthly-report

IDs derive from the thread ID and the run number, so a trace sent twice is the same trace. Content is only sent if \
traces.content is set. The headers in the settings are only sent to the configured endpoint.")]
pub(super) struct ExportArgs {
    /// Threads to export, by UUID or name
    #[arg(value_name = "THREAD", required = true)]
    threads: Vec<String>,
    /// Protocol
    #[arg(long, value_name = "PROTOCOL", default_value = "otlp")]
    to: Protocol,
    /// Base URL of the collector. Defaults to traces.otlp_endpoint
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    endpoint: Option<String>,
    /// Print the counts as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Protocol {
    /// OTLP over HTTP or gRPC, as set in traces.protocol
    Otlp,
}

fn endpoint(text: &str) -> Result<String, Invalid> {
    check_collector(text).map(|()| text.to_owned())
}

pub(super) async fn export(settings: Settings, args: ExportArgs) -> Result<Exit> {
    let Protocol::Otlp = args.to;
    let replayer = Replayer::new(&settings, args.endpoint)?;
    let threads = Threads::open_to_read(&settings).await?;
    let mut done = Replayed::default();
    let sending = async {
        for name in &args.threads {
            let thread = threads.find(Some(name)).await?;
            let sent = replayer.send(threads.store().as_ref(), thread, &mut done).await;
            sent.map_err(|error| Error::from(error).about(name))?;
        }
        Ok(())
    };
    let sent: Result<()> = sending.await;
    threads.close().await;
    if args.json {
        output::json(&done)?;
    } else {
        let traces = output::count(done.traces, "trace");
        let mut words = format!("sent {traces} with {}", output::count(done.spans, "span"));
        if done.no_longer_kept > 0 {
            words.push_str(&format!("; the steps of {} runs were pruned", done.no_longer_kept));
        }
        output::text(&words)?;
    }
    sent?;
    match done.rejected_spans {
        0 => Ok(Exit::Done),
        rejected => Err(Error::SpansRejected(rejected)),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace serve
  perihelion trace serve --addr 127.0.0.1:0
  perihelion trace serve --ui ./jaeger-ui/build

Implements the Jaeger query API for clients such as the Jaeger UI and the Jaeger data source of Grafana. Prometheus \
finds the status of threads at /metrics. With --ui, this process also serves a build of the Jaeger UI. It has no \
authentication, so it only listens on loopback. Content is only shown if traces.content is set.")]
pub(super) struct ServeArgs {
    /// Loopback address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:16686")]
    addr: SocketAddr,
    /// Directory with a build of the Jaeger UI to serve
    #[arg(long, value_name = "DIR")]
    ui: Option<PathBuf>,
}

pub(super) async fn serve(settings: Settings, args: ServeArgs) -> Result<Exit> {
    if !args.addr.ip().is_loopback() {
        return Err(Error::NotLoopback(args.addr));
    }
    if let Some(directory) = args.ui.as_ref().filter(|ui| !ui.join("index.html").is_file()) {
        return Err(Error::NoJaegerUi(directory.clone()));
    }
    let signals = Signals::listen()?;
    // A mistyped name makes no second, empty database.
    database_exists(&settings)?;
    let store = open_store(&settings).await?;
    let finder = trace_finder(Arc::clone(&store), &settings);
    let metrics = Metrics::new(&settings, Arc::clone(&store), None)?;
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
    served.map(Exit::from)
}
