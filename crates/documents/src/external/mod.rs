//! Asks somebody else's parser to read documents that ours cannot, or not as well.
//!
//! Enter at [`External`]: a program of this machine, or a docling-serve. What comes back is Markdown in UTF-8 with a form feed between two
//! pages, where the reader knows of pages, and is parsed like any other document.

mod docling;
mod pages;
mod program;

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::Error;

pub use docling::Docling;
pub(crate) use pages::Paged;

/// A parser of somebody else's.
#[derive(Clone, Debug)]
pub struct External {
    pub reader: Reader,
    /// Endings of names whose documents it reads in place of our parser, without the dot; what our parser finds no text in
    /// or does not know it reads in any case.
    pub endings: Vec<String>,
    pub timeout: Duration,
}

/// Who reads.
#[derive(Clone, Debug)]
pub enum Reader {
    Program(PathBuf),
    Docling(Docling),
}

/// Tells whether a name ends in one of the endings, which may begin with their dot; capitals make no difference.
pub fn ends_in(name: &str, endings: &[String]) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_it = |one: &String| {
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case(one.trim_start_matches('.')))
    };
    endings.iter().any(is_it)
}

impl External {
    /// Tells whether documents of this name are read by it in the first place.
    pub(crate) fn is_for(&self, path: &str) -> bool {
        ends_in(path, &self.endings)
    }

    /// Makes the error that names it, for the operator.
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

    /// Returns what it writes about a document, at most so many bytes, and where its pages lie if it knows.
    ///
    /// # Errors
    /// [`Error::External`].
    pub(crate) async fn read(&self, path: &str, bytes: &[u8], most: usize) -> Result<Paged, Error> {
        let reading = async {
            match &self.reader {
                Reader::Program(program) => {
                    program::read(program, path, bytes, most).await.map(pages::at_form_feeds)
                }
                Reader::Docling(docling) => docling.read(path, bytes, most).await,
            }
        };
        let read = tokio::time::timeout(self.timeout, reading).await;
        let read = read.unwrap_or_else(|_| Err(Failure::Timeout(self.timeout.as_secs_f64())));
        read.map_err(|source| self.failed(path, source))
    }
}

/// Why a parser of somebody else's did not read a document.
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
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
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
