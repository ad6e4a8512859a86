//! Uses an external parser for documents that ours cannot read, or not as well.
//!
//! Enter at [`External`]: a program of this machine, or a docling-serve. Its result is Markdown in UTF-8 with a form
//! feed between two pages, if the parser knows pages, and is parsed like any other document.

mod docling;
mod pages;
mod program;

use std::iter::successors;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::{Error, Result};

pub use docling::Docling;
pub(crate) use pages::Paged;
pub(crate) use program::{Ended, run};

#[derive(Clone, Debug)]
pub struct External {
    pub reader: Reader,
    /// File name endings, without the dot, whose documents it reads instead of our parser; it also reads documents in
    /// which our parser finds no text or whose format it does not know.
    pub endings: Vec<String>,
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub enum Reader {
    Program(PathBuf),
    Docling(Docling),
}

/// Returns whether a name has one of the endings, with or without their dot, in upper or lower case.
pub fn ends_in(name: &str, endings: &[String]) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_it = |one: &String| {
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case(one.trim_start_matches('.')))
    };
    endings.iter().any(is_it)
}

impl External {
    /// Returns whether it is the first parser for documents of this name.
    pub(crate) fn is_for(&self, path: &str) -> bool {
        ends_in(path, &self.endings)
    }

    pub(crate) fn failed(&self, path: &str, source: Failure) -> Error {
        let parser = match &self.reader {
            Reader::Program(program) => program.display().to_string(),
            Reader::Docling(docling) => docling.url().to_owned(),
        };
        Error::External { path: path.to_owned(), parser, source }
    }

    /// Names it for who may see the document, which is not to see this machine's paths and addresses.
    pub(crate) fn public_name(&self) -> String {
        match &self.reader {
            Reader::Program(program) => {
                program.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Reader::Docling(_) => "docling-serve".to_owned(),
        }
    }

    /// Returns its text for a document, up to a number of bytes, and the positions of pages if it knows them.
    pub(crate) async fn read(&self, path: &str, bytes: &[u8], most: usize) -> Result<Paged> {
        let time = self.timeout;
        let read = match &self.reader {
            Reader::Program(program) => {
                program::read(program, path, bytes, most, time).await.map(pages::at_form_feeds)
            }
            Reader::Docling(docling) => {
                let read = tokio::time::timeout(time, docling.read(path, bytes, most)).await;
                read.unwrap_or_else(|_| Err(Failure::Timeout(time.as_secs_f64())))
            }
        };
        read.map_err(|source| self.failed(path, source))
    }
}

/// Why an external parser did not read a document.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("it cannot be started: {0}")]
    Start(#[source] std::io::Error),
    #[error("it cannot be read: {0}")]
    Pipe(#[from] std::io::Error),
    #[error("{status}{}{output}", if .output.is_empty() { "" } else { ": " })]
    Exit { status: ExitStatus, output: String },
    #[error("it is not done within {0} s (documents.parser_timeout_sec)")]
    Timeout(f64),
    #[error("it writes more than {0} bytes")]
    TooLong(usize),
    #[error("its output cannot be read: {0}")]
    Unreadable(#[source] perihelion_parse::Error),
    /// Without the address, and with the innermost cause.
    #[error("{}", causes(.0))]
    Request(#[source] reqwest::Error),
    #[error("status {0}: set its key in PERIHELION_DOCUMENTS_PARSER_API_KEY")]
    Key(u16),
    #[error("status {status}: {text}")]
    Status { status: u16, text: String },
    #[error("its answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("{0}")]
    Task(String),
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error.without_url())
    }
}

fn causes(error: &reqwest::Error) -> String {
    let all = successors(Some(error as &dyn std::error::Error), |error| error.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_compared_without_case() {
        let external = External {
            reader: Reader::Program("x".into()),
            endings: vec!["pdf".into(), ".Doc".into()],
            timeout: Duration::from_secs(1),
        };
        assert!(external.is_for("A.PDF") && external.is_for("a.doc"));
        assert!(!external.is_for("pdf") && !external.is_for("a.docx"));
    }
}
