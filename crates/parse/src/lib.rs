//! Documents become one canonical text with an offset table of pages, sections and tables.
//!
//! Enter at [`parse`], or at [`child::answer`] for parsing in a separate process; [`chunk::chunk`] divides the text for
//! search. Invariant: a document that gives no text is an error that names the reason (a password, a scan, a broken
//! file), never an empty success. Every range is in bytes of [`Parsed::text`], on character boundaries. Pictures are read
//! by a [`Tesseract`], if [`Limits`] name one. Deliberately absent: other I/O, and models.

mod builder;
pub mod child;
pub mod chunk;
mod delimited;
mod document;
mod encoding;
mod format;
mod html;
mod limits;
mod mail;
mod markdown;
mod office;
#[cfg(feature = "pdf")]
mod pdf;
mod plain;
mod recognition;
mod rtf;
mod sheet;

pub use document::{Page, Parsed, Section, Table, Warning};
pub use encoding::canonical;
pub use format::Format;
pub use limits::Limits;
pub use recognition::{PASSED as PASSED_TO_TESSERACT, Tesseract};

/// Parses a document; `name` is its file name and helps if the bytes do not show the format.
///
/// # Errors
/// [`Error`] with the problem of the document and the fix.
pub fn parse(bytes: &[u8], name: &str, limits: &Limits) -> Result<Parsed, Error> {
    limits.check_input(bytes.len())?;
    let format = format::detect(bytes, name)?;
    let mut parsed = match format {
        #[cfg(feature = "pdf")]
        Format::Pdf => pdf::parse(bytes, limits),
        #[cfg(not(feature = "pdf"))]
        Format::Pdf => Err(Error::Unsupported("PDF, which this build leaves out".into())),
        Format::Docx => office::docx(bytes, limits),
        Format::Pptx => office::pptx(bytes, limits),
        Format::Odt | Format::Odp | Format::Ods => office::open_document(bytes, format, limits),
        Format::Xlsx | Format::Xls => sheet::parse(bytes, format, limits),
        Format::Epub => office::epub(bytes, limits),
        Format::Rtf => rtf::parse(bytes, limits),
        Format::Eml => mail::parse(bytes, limits),
        Format::Csv => delimited::parse(bytes, name, limits),
        Format::Html => html::parse(&encoding::decode_html(bytes)?, limits),
        Format::Markdown => markdown::parse(encoding::decode(bytes)?, limits),
        Format::Image => recognition::parse(bytes, limits),
        Format::Text => plain::parse(encoding::decode(bytes)?, limits),
    }?;
    limits.check_text(parsed.text.len())?;
    if !parsed.text.chars().any(char::is_alphanumeric) {
        return Err(Error::NoText);
    }
    if parsed.title.is_none() {
        let mut headings = parsed.sections.iter().map(|section| &section.title);
        parsed.title = headings.find(|title| !title.trim().is_empty()).cloned();
    }
    Ok(parsed)
}

/// Why a document could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the document is empty")]
    Empty,
    #[error("the document has a password; remove the password and add the document again")]
    Password,
    #[error("the document is a scan without text ({pages} pages): {why}")]
    Scan { pages: usize, why: String },
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
    #[error("{message}")]
    Reported { class: String, message: String },
    #[error("the parser ended without a result ({0}): the document needs too much memory or time")]
    Died(String),
}

impl Error {
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
