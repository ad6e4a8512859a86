//! Why a document gave no text.

use crate::Format;

/// Why a document could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the document is empty")]
    Empty,
    #[error(
        "the document is protected by a password; remove it (for example with the program that set it) and add the document again"
    )]
    Password,
    #[error(
        "the document holds {pages} page(s) of pictures and no text (a scan); run character recognition over it first, for example `ocrmypdf`"
    )]
    Scan { pages: usize },
    #[error("the document holds no text")]
    NoText,
    #[error("the {format} document is damaged and cannot be read: {reason}")]
    Broken { format: Format, reason: String },
    #[error(
        "documents of this kind cannot be read ({0}); convert it to PDF, DOCX, PPTX, XLSX, ODT, RTF, EPUB, CSV, HTML, Markdown or text"
    )]
    Unsupported(String),
    #[error("the document is too large: {bytes} bytes, at most {most}")]
    TooLarge { bytes: usize, most: usize },
    #[error("the document unpacks to more than {most} bytes, or more than {ratio} times its size")]
    Bomb { most: usize, ratio: usize },
    #[error("the document has too many pages: {pages}, at most {most}")]
    TooManyPages { pages: usize, most: usize },
    #[error("the text's encoding cannot be found out: {0}")]
    Encoding(String),
    /// What a process that parsed reported.
    #[error("{message}")]
    Reported { class: String, message: String },
    #[error("the parser ended without an answer ({0}): the document takes too much memory or time")]
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
