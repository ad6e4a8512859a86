//! Logs: to standard error, above whatever progress is shown.

use std::io::Write;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::{Error, output};
use crate::config::{Log, LogFormat};
use crate::llm;

/// Starts logging as the settings say.
pub(super) fn start(log: &Log) -> Result<(), Error> {
    let refused = |reason: String| Error::Log { filter: log.filter.clone(), reason };
    let filter = EnvFilter::try_new(&log.filter).map_err(|error| refused(error.to_string()))?;
    let directive = llm::LOG_DIRECTIVE.parse().map_err(|error| refused(format!("{error}")))?;
    let mut filter = filter.add_directive(directive);
    // It tells of every message at `info`; who wants that names it.
    if !log.filter.contains("rmcp") {
        let quiet = "rmcp=warn".parse().map_err(|error| refused(format!("{error}")))?;
        filter = filter.add_directive(quiet);
    }
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(AboveBars);
    let started = match log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    // An embedding program may log already: that stands.
    drop(started);
    Ok(())
}

/// Writes each event as a whole, with the bars out of the way.
struct AboveBars;

struct Event(Vec<u8>);

impl<'a> MakeWriter<'a> for AboveBars {
    type Writer = Event;
    fn make_writer(&'a self) -> Event {
        Event(Vec::new())
    }
}

impl Write for Event {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        output::BARS.suspend(|| {
            let _ = std::io::stderr().lock().write_all(&self.0);
        });
    }
}
