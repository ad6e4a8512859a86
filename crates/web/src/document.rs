//! Documents other than pages, mainly PDF, which a separate parser reads.

use std::pin::Pin;

use url::Url;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    pub title: Option<String>,
    pub text: String,
}

pub type Cause = Box<dyn std::error::Error + Send + Sync>;

pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<Document, Cause>> + Send + 'a>>;

pub trait ReadDocument: Send + Sync {
    /// Parses one; `name` is its file name.
    fn read<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> Reading<'a>;
}

/// The endings of documents, with what the content types of each contain.
const KINDS: [(&str, &str); 9] = [
    ("pdf", "pdf"),
    ("docx", "wordprocessingml"),
    ("pptx", "presentationml"),
    ("xlsx", "spreadsheetml"),
    ("odt", "opendocument.text"),
    ("odp", "opendocument.presentation"),
    ("ods", "opendocument.spreadsheet"),
    ("rtf", "rtf"),
    ("epub", "epub"),
];

/// Returns the file name of a document, if an answer is one.
pub fn name(url: &Url, media: &str) -> Option<String> {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let ending = last.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    // A server that does not know sends bytes.
    let is_unknown = media.contains("octet-stream");
    let is_it = |(known, kind): &&(&str, &str)| {
        media.contains(kind) || (is_unknown && ending.as_deref() == Some(*known))
    };
    KINDS.iter().find(is_it).map(|(ending, _)| format!("document.{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_a_document_follows_from_its_content_type_or_its_ending() {
        let named = |address: &str, media: &str| name(&Url::parse(address).unwrap(), media);
        let pdf = Some("document.pdf".to_owned());
        assert_eq!(named("https://a.test/x", "application/pdf; charset=binary"), pdf);
        assert_eq!(named("https://a.test/x.PDF", "application/octet-stream"), pdf);
        assert_eq!(named("https://a.test/x.pdf", "image/png"), None);
        assert_eq!(named("https://a.test/", "application/octet-stream"), None);
    }
}
