//! `trace export`: sends the traces of threads to a collector, however old they are.

use crate::cli::{Error, Exit, output};
use perihelion_runtime::{Replayed, Replayer, Threads};
use perihelion_settings::config::{Invalid, Settings, check_collector};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace export weekly-report --to otlp --endpoint http://localhost:4318
  PERIHELION_TRACES_CONTENT=true perihelion trace export weekly-report monthly-report

IDs derive from the thread ID and the run number, so a trace sent twice is the same trace. Content is only sent if
traces.content is set. The headers in the settings are only sent to the configured endpoint.")]
pub(super) struct Args {
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

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let Protocol::Otlp = args.to;
    let replayer = Replayer::new(&settings, args.endpoint)?;
    let threads = Threads::open_to_read(&settings).await?;
    let mut done = Replayed::default();
    let mut failed = None;
    for name in &args.threads {
        let thread = match threads.find(Some(name)).await {
            Ok(thread) => thread,
            Err(error) => {
                failed = Some(error.into());
                break;
            }
        };
        if let Err(error) = replayer.send(threads.store().as_ref(), thread, &mut done).await {
            failed = Some(Error::from(error).about(name));
            break;
        }
    }
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
    match (failed, done.rejected_spans) {
        (Some(error), _) => Err(error),
        (None, 0) => Ok(Exit::Done),
        (None, rejected) => {
            output::error(&format!("the collector rejected {rejected} spans"));
            Ok(Exit::Failed)
        }
    }
}
