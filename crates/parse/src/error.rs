//! Why a document gave no text.

use crate::Format;

/// Why a document could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the document is empty")]
    Empty,
    #[error("the document has a password; remove the password and add the document again")]
    Password,
    #[error(
        "the document is a scan without text ({pages} pages); run text recognition first, for example `ocrmypdf`"
    )]
    Scan { pages: usize },
    #[error("the document contains no text")]
    NoText,
    #[error("the {format} document is damaged and cannot be read: {reason}")]
    Broken { format: Format, reason: String },
    #[error(
        "this format is not supported ({0}); convert it to PDF, DOCX, PPTX, XLSX, ODT, RTF, EPUB, CSV, HTML, Markdown or text"
    )]
    Unsupported(String),
    #[error("the document is too large: {bytes} bytes, at most {most}")]
    TooLarge { bytes: usize, most: usize },
    #[error("the document unpacks to more than {most} bytes, or more than {ratio} times its size")]
    Bomb { most: usize, ratio: usize },
    #[error("the document has too many pages: {pages}, at most {most}")]
    TooManyPages { pages: usize, most: usize },
    #[error("cannot detect the encoding of the text: {0}")]
    Encoding(String),
    /// What a process that parsed reported.
    #[error("{message}")]
    Reported { class: String, message: String },
    #[error("the parser ended without a result ({0}): the document needs too much memory or time")]
    Died(String),
}

impl Error {
    /// Returns the class of the error in one word, as it is stored and shown.
    pub fn class(&self) -> &str {
        match self {
            Self::Empty => "empty",
            Self::Password => "password",
            Self::Scan { .. } => "scan",
            Self::NoText => "no_text",
            Self::Broken { .. } => "broken",
            Self::Unsupported(_) => "unsupported",
            Self::TooLarge { .. } | Self::Bomb { .. } | Self::TooManyPages { .. } => "too_large",
            Self::Encoding(_) => "encoding",
            Self::Reported { class, .. } => class,
            Self::Died(_) => "died",
        }
    }

    pub(crate) fn broken(format: Format, reason: impl std::fmt::Display) -> Self {
        let reason: String = reason.to_string().chars().take(300).collect();
        Self::Broken { format, reason }
    }
}
