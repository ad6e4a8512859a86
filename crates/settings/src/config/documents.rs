//! The documents section: quotas, age, weights of searches, and who reads what our parser cannot.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::invalid::Invalid;
use super::resolve::{Setting, any, http_url, if_any, positive, seconds, section};
use super::{Age, Names};

/// Variable with the key that a docling-serve asks for.
pub(super) const PARSER_KEY: &str = "PERIHELION_DOCUMENTS_PARSER_API_KEY";

section! {
    /// How much each tenant may keep of documents and for how long, and how they are read.
    DocumentSettings, DocumentSettingsFile, "documents" {
        /// Documents.
        max_documents: u64 = 100_000, "PERIHELION_DOCUMENTS_MAX_DOCUMENTS", positive;
        /// Bytes of their texts, in UTF-8; none: not bounded.
        max_text_bytes: Option<u64> = None, "PERIHELION_DOCUMENTS_MAX_TEXT_BYTES", if_any(positive);
        /// Pieces that can be found; none: not bounded.
        max_chunks: Option<u64> = None, "PERIHELION_DOCUMENTS_MAX_CHUNKS", if_any(positive);
        /// Documents that were not changed for so long are deleted, hourly by a service; none: of any age are kept.
        max_age: Option<Age> = None, "PERIHELION_DOCUMENTS_MAX_AGE", any;
        /// How much words count where a search fuses what it found by words and by meaning.
        weight_of_words: f64 = 1.0, "PERIHELION_DOCUMENTS_WEIGHT_OF_WORDS", positive;
        /// How much meaning counts there.
        weight_of_meaning: f64 = 1.0, "PERIHELION_DOCUMENTS_WEIGHT_OF_MEANING", positive;
        /// Program, or address of a docling-serve, that reads what our parser finds no text in or does not know; none: such are refused.
        parser: Option<OtherParser> = None, "PERIHELION_DOCUMENTS_PARSER", any;
        /// Endings of names whose documents it reads in any case.
        parser_for: Names = Names::default(), "PERIHELION_DOCUMENTS_PARSER_FOR", any;
        /// Seconds that it may take for a document.
        parser_timeout_sec: f64 = 300.0, "PERIHELION_DOCUMENTS_PARSER_TIMEOUT_SEC", seconds;
    }
}

/// Who reads documents that our parser cannot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum OtherParser {
    /// Gets a document on standard input and its name as an argument, and writes Markdown.
    Program(PathBuf),
    /// Base address of a docling-serve.
    Docling(String),
}

impl TryFrom<String> for OtherParser {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        if !text.contains("://") {
            return Ok(Self::Program(PathBuf::from(text)));
        }
        let url = text.trim().to_owned();
        http_url(&url)?;
        Ok(Self::Docling(url))
    }
}

impl Setting for OtherParser {
    fn placed_in(self, directory: &Path) -> Self {
        match self {
            Self::Program(program) => Self::Program(program.placed_in(directory)),
            Self::Docling(_) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_server_and_anything_else_a_program() {
        let read = OtherParser::from_text;
        let program = read("./read.sh").unwrap().placed_in(Path::new("/etc/p"));
        assert_eq!(program, OtherParser::Program("/etc/p/./read.sh".into()));
        let server = read("http://localhost:5001").unwrap().placed_in(Path::new("/etc/p"));
        assert_eq!(server, OtherParser::Docling("http://localhost:5001".to_owned()));
        for wrong in ["ftp://localhost", "https://user:word@host", "http://"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
