//! Asks a process of its own to parse.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use perihelion_parse::{Format, Limits, Parsed, Warning};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::external::Failure;
use crate::{Error, External};

/// Where documents are parsed.
#[derive(Clone, Debug)]
pub enum Parser {
    /// In a process that this command starts, with the document's name appended to its arguments.
    Process { program: PathBuf, arguments: Vec<OsString>, limits: Limits, timeout: Duration },
    /// In this process, for documents that are trusted.
    Here(Limits),
    /// By `own`, and by a parser of somebody else's what that is meant for.
    Helped { own: Box<Parser>, by: External },
}

/// Most bytes of an answer, in sizes of the text it may hold: JSON escapes, and the outline.
const SWELLING: usize = 4;

impl Parser {
    /// Parses a document.
    ///
    /// # Errors
    /// [`Error::Parse`] naming what is wrong with it, [`Error::Parser`] when the process cannot be started,
    /// [`Error::External`] when the other parser fails.
    pub async fn parse(&self, path: &str, bytes: &[u8]) -> Result<Parsed, Error> {
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
    async fn parse_by(&self, by: &External, path: &str, bytes: &[u8]) -> Result<Parsed, Error> {
        let limits = self.limits();
        if bytes.len() > limits.input_bytes {
            let source =
                perihelion_parse::Error::TooLarge { bytes: bytes.len(), most: limits.input_bytes };
            return Err(Error::Parse { path: path.to_owned(), source });
        }
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

    fn limits(&self) -> Limits {
        match self {
            Self::Here(limits) | Self::Process { limits, .. } => limits.clone(),
            Self::Helped { own, .. } => own.limits(),
        }
    }

    async fn parse_alone(&self, path: &str, bytes: &[u8]) -> Result<Parsed, Error> {
        let failed = |source| Error::Parse { path: path.to_owned(), source };
        match self {
            Self::Here(limits) => perihelion_parse::parse(bytes, path, limits).map_err(failed),
            // One that is helped is not put into another.
            Self::Helped { own, .. } => Box::pin(own.parse_alone(path, bytes)).await,
            Self::Process { program, arguments, limits, timeout } => {
                if bytes.len() > limits.input_bytes {
                    let most = limits.input_bytes;
                    return Err(failed(perihelion_parse::Error::TooLarge {
                        bytes: bytes.len(),
                        most,
                    }));
                }
                let mut command = tokio::process::Command::new(program);
                command.args(arguments).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
                command.stderr(Stdio::null()).env_clear().kill_on_drop(true);
                let mut child = command.spawn().map_err(Error::Parser)?;
                let stdin = child.stdin.take();
                let stdout = child.stdout.take();
                let most = (limits.text_bytes.saturating_mul(SWELLING)) as u64;
                let mut output = Vec::new();
                let exchange = async {
                    let write = async {
                        if let Some(mut stdin) = stdin {
                            // A process that ends early says why on its output.
                            let _ = stdin.write_all(bytes).await;
                        }
                    };
                    let read = async {
                        match stdout {
                            Some(stdout) => stdout.take(most).read_to_end(&mut output).await,
                            None => Ok(0),
                        }
                    };
                    let ((), read) = tokio::join!(write, read);
                    read.map(|_| ())
                };
                // The boundary of time is a wall clock's: processor time is bounded by the process itself.
                let ended = match tokio::time::timeout(*timeout, exchange).await {
                    Ok(Ok(())) => match child.wait().await {
                        Ok(status) => status.to_string(),
                        Err(error) => error.to_string(),
                    },
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => {
                        child.kill().await.map_err(Error::Parser)?;
                        let reason = format!("not done within {} s", timeout.as_secs());
                        return Err(failed(perihelion_parse::Error::Died(reason)));
                    }
                };
                perihelion_parse::child::read(&output, &ended).map_err(failed)
            }
        }
    }
}
