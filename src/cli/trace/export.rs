//! `trace export`: sends the traces of threads to a collector, however old they are.

use crate::cli::{Error, Exit, output};
use perihelion_runtime::{Replayed, Replayer, Threads};
use perihelion_settings::config::{Invalid, Settings, check_collector};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace export weekly-report --to otlp --endpoint http://localhost:4318
  PERIHELION_TRACES_CONTENT=true perihelion trace export weekly-report monthly-report

Ids follow from thread and run, so a trace sent twice is the same trace. Content is sent where traces.content
is set, and the headers of the settings only to the configured endpoint.")]
pub(super) struct Args {
    /// The threads: UUIDs, or names that stand for one
    #[arg(value_name = "THREAD", required = true)]
    threads: Vec<String>,
    /// The protocol
    #[arg(long, value_name = "PROTOCOL", default_value = "otlp")]
    to: Protocol,
    /// Base address of the collector; by default traces.otlp_endpoint
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    endpoint: Option<String>,
    /// Print the counts as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Protocol {
    /// OTLP, over HTTP or gRPC as traces.protocol says
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
        let mut words = format!("{traces} with {} arrived", output::count(done.spans, "span"));
        if done.no_longer_kept > 0 {
            words.push_str(&format!("; of {} runs nothing is kept", done.no_longer_kept));
        }
        output::text(&words)?;
    }
    match (failed, done.rejected_spans) {
        (Some(error), _) => Err(error),
        (None, 0) => Ok(Exit::Done),
        (None, rejected) => {
            output::error(&format!("the collector refused {rejected} spans of what it took"));
            Ok(Exit::Failed)
        }
    }
}
