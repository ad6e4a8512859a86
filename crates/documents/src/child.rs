//! Parses in a separate process.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use perihelion_parse::{Format, Limits, PASSED_TO_TESSERACT, Parsed, Warning};
use tokio::process::Command;

use crate::external::{Ended, Failure, run};
use crate::{Error, External, Result};

#[derive(Clone, Debug)]
pub enum Parser {
    /// In a process that this command starts, with the document's name appended to its arguments.
    Process { program: PathBuf, arguments: Vec<OsString>, limits: Limits, timeout: Duration },
    /// In this process, for documents that are trusted.
    Here(Limits),
    /// By `own`, and by an external parser for its documents.
    Helped { own: Box<Parser>, by: External },
}

/// Maximum bytes of an answer, relative to the size of its text: JSON escapes, and the outline.
const SWELLING: usize = 4;

impl Parser {
    /// Parses a document.
    ///
    /// # Errors
    /// [`Error::Parse`] with the problem, [`Error::Parser`] if the process cannot be started, [`Error::External`] if
    /// the external parser fails.
    pub async fn parse(&self, path: &str, bytes: &[u8]) -> Result<Parsed> {
        let Self::Helped { own, by } = self else { return self.parse_alone(path, bytes).await };
        if !by.is_for(path) {
            let parsed = own.parse_alone(path, bytes).await;
            let is_refused = matches!(&parsed, Err(Error::Parse { source, .. })
                if matches!(source.class(), "scan" | "no_text" | "unsupported"));
            if !is_refused {
                return parsed;
            }
        }
        own.parse_by(by, path, bytes).await
    }

    /// Has another parser read a document, and parses the Markdown that it writes.
    async fn parse_by(&self, by: &External, path: &str, bytes: &[u8]) -> Result<Parsed> {
        let limits = self.limits();
        let refused = |source| Error::Parse { path: path.to_owned(), source };
        limits.check_input(bytes.len()).map_err(refused)?;
        let read = by.read(path, bytes, limits.text_bytes).await?;
        let mut parsed = match self.parse_alone("text.md", &read.text).await {
            Err(Error::Parse { source, .. }) => {
                return Err(by.failed(path, Failure::Unreadable(source)));
            }
            parsed => parsed?,
        };
        read.place(&mut parsed);
        parsed.format = Format::by_name(path).unwrap_or(parsed.format);
        let program = by.public_name();
        let paged = !parsed.pages.is_empty();
        parsed.warnings.push(Warning::OtherParser { program, paged });
        Ok(parsed)
    }

    fn limits(&self) -> &Limits {
        match self {
            Self::Here(limits) | Self::Process { limits, .. } => limits,
            Self::Helped { own, .. } => own.limits(),
        }
    }

    async fn parse_alone(&self, path: &str, bytes: &[u8]) -> Result<Parsed> {
        let failed = |source| Error::Parse { path: path.to_owned(), source };
        match self {
            Self::Here(limits) => perihelion_parse::parse(bytes, path, limits).map_err(failed),
            // One that is helped is not put into another.
            Self::Helped { own, .. } => Box::pin(own.parse_alone(path, bytes)).await,
            Self::Process { program, arguments, limits, timeout } => {
                limits.check_input(bytes.len()).map_err(failed)?;
                let mut command = Command::new(program);
                let passed = PASSED_TO_TESSERACT
                    .iter()
                    .filter_map(|name| Some((*name, std::env::var_os(name)?)));
                command.args(arguments).arg(path).env_clear().envs(passed);
                let most = limits.text_bytes.saturating_mul(SWELLING);
                // The boundary of time is a wall clock's: processor time is bounded by the process itself.
                match run(command, bytes, most, *timeout).await {
                    Ok(Ended { output, status, .. }) => {
                        perihelion_parse::child::read(&output, &status.to_string()).map_err(failed)
                    }
                    Err(Failure::Start(error)) => Err(Error::Parser(error)),
                    Err(error) => {
                        let why = match error {
                            Failure::Timeout(time) => format!("not done within {time} s"),
                            error => error.to_string(),
                        };
                        Err(failed(perihelion_parse::Error::Died(why)))
                    }
                }
            }
        }
    }
}
