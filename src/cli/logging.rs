//! Logs: to standard error, above whatever progress is shown.

use std::io::Write;

use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Directive;
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{self, FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::escape::{shown_entry, shown_json};
use super::{Error, Result, output};
use perihelion_mcp as mcp;
use perihelion_runtime::{log_layer, log_place, redact_log};
use perihelion_settings::config::{Log, LogFormat};
use perihelion_telemetry::LogPlace;

/// Reads the filter of the settings.
pub(super) fn filter(log: &Log) -> Result<EnvFilter> {
    let refused = |reason| Error::Log { filter: log.filter.clone(), reason };
    let filter = EnvFilter::try_new(&log.filter).map_err(|error| refused(error.into()))?;
    let directive = |text: &str| text.parse::<Directive>().map_err(|error| refused(error.into()));
    let mut filter = filter.add_directive(directive(mcp::LOG_DIRECTIVE)?);
    // It logs addresses and messages unmasked, and our own messages report what matters. A filter that names rmcp turns
    // it on.
    if !log.filter.contains("rmcp") {
        filter = filter.add_directive(directive("rmcp=off")?);
    }
    Ok(filter)
}

pub(super) fn start(log: &Log) -> Result<()> {
    output::set_json_lines(log.format == LogFormat::Json);
    let filter = filter(log)?;
    let started = match log.format {
        LogFormat::Text => tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(AboveBars(log.format))
            .finish()
            .try_init(),
        LogFormat::Json => {
            let lines = fmt::format().json().with_current_span(false).with_span_list(false);
            let written = fmt::layer()
                .json()
                .event_format(Placed(lines))
                .with_ansi(false)
                .with_writer(AboveBars(log.format))
                .with_filter(filter);
            tracing_subscriber::registry().with(log_layer()).with(written).try_init()
        }
    };
    // An embedding program may have its own log, which stays.
    drop(started);
    Ok(())
}

/// Adds the place of the run's trace to each log line of a run: `trace_id`, `span_id`, `thread` and `run`.
struct Placed(Format<Json>);

impl<S, N> FormatEvent<S, N> for Placed
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        match (log_place(), line.strip_prefix('{')) {
            (Some(place), Some(rest)) => {
                // None of these needs to be escaped: they are hexadecimal, a UUID and a number.
                let LogPlace { trace_id: trace, span_id: span, thread, run } = place;
                write!(
                    writer,
                    "{{\"trace_id\":\"{trace}\",\"span_id\":\"{span}\",\"thread\":\"{thread}\",\"run\":{run},{rest}"
                )
            }
            _ => writer.write_str(&line),
        }
    }
}

/// Writes each event as a whole, with the bars out of the way.
///
/// Servers and models write some of the texts: they stay in the event's line, with hidden characters and control
/// sequences made visible.
struct AboveBars(LogFormat);

struct Line {
    format: LogFormat,
    bytes: Vec<u8>,
}

impl<'a> MakeWriter<'a> for AboveBars {
    type Writer = Line;
    fn make_writer(&'a self) -> Line {
        Line { format: self.0, bytes: Vec::new() }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Line {
    fn text(&self) -> String {
        let text = redact_log(&String::from_utf8_lossy(&self.bytes));
        let line = text.trim_end_matches('\n');
        match self.format {
            LogFormat::Text => shown_entry(line),
            LogFormat::Json => shown_json(line),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let text = self.text();
        output::BARS.suspend(|| {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_line_with_any_server_output() {
        let words = "WARN its last words: a\u{1b}[2K\u{9b}\nERROR forged\u{202e}\n";
        let mut line = AboveBars(LogFormat::Text).make_writer();
        line.write_all(words.as_bytes()).unwrap();
        assert_eq!(line.text(), "WARN its last words: a\\u{1b}[2K\\u{9b}\\nERROR forged\\u{202e}");
    }
}
