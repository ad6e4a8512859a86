//! The retention sections: what a prune without options deletes; the archive of threads; quotas, age and weights of
//! documents; the external parser.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use super::Names;
use super::resolve::{Setting, any, http_url, if_any, positive, seconds, section};
use super::strict::Invalid;

section! {
    /// The retention of threads; an active or interrupted thread always stays.
    Retention, RetentionFile, "retention" {
        /// Threads without changes for this long are deleted; `None` means never.
        max_age: Option<Age> = None, "PERIHELION_RETENTION_MAX_AGE", any;
        /// The number of newest threads that stay; `None` means all.
        max_threads: Option<u64> = None, "PERIHELION_RETENTION_MAX_THREADS", if_any(positive);
        /// Threads are shortened to this number of newest steps; `None` means never.
        max_steps: Option<u64> = None, "PERIHELION_RETENTION_MAX_STEPS", if_any(positive);
    }
}

section! {
    /// The files to which threads at rest are moved.
    Archive, ArchiveFile, "archive" {
        /// The directory of the files, which all processes on the database share; `None` means that threads stay in the
        /// database.
        dir: Option<PathBuf> = None, "PERIHELION_ARCHIVE_DIR", any;
        /// Threads at rest without changes for this long are archived, hourly by a service.
        after: Age = Age(TimeDelta::days(30)), "PERIHELION_ARCHIVE_AFTER", any;
    }
}

impl Retention {
    pub fn keeps_all(&self) -> bool {
        self.max_age.is_none() && self.max_threads.is_none() && self.max_steps.is_none()
    }
}

/// A length of time as people write it: `45s`, `10m`, `12h`, `30d` or `8w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Age(pub TimeDelta);

impl Age {
    /// Returns the moment this long before another; `None` before the beginning of time.
    pub fn before(self, moment: DateTime<Utc>) -> Option<DateTime<Utc>> {
        moment.checked_sub_signed(self.0)
    }

    /// Returns the moment this long after another; `None` after the end of time.
    pub fn after(self, moment: DateTime<Utc>) -> Option<DateTime<Utc>> {
        moment.checked_add_signed(self.0)
    }
}

impl std::str::FromStr for Age {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let (number, unit) =
            text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            _ => return Err(Invalid::Age),
        };
        let number = number.trim().parse::<u32>().ok().map(i64::from);
        let length = number.and_then(|number| TimeDelta::try_seconds(number * seconds));
        length.map(Self).ok_or(Invalid::Age)
    }
}

impl TryFrom<String> for Age {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl Setting for Age {}

/// Variable with the key that a docling-serve asks for.
pub(super) const PARSER_KEY: &str = "PERIHELION_DOCUMENTS_PARSER_API_KEY";

section! {
    /// How much each tenant may keep of documents and for how long, and how they are read.
    DocumentSettings, DocumentSettingsFile, "documents" {
        /// Documents.
        max_documents: u64 = 100_000, "PERIHELION_DOCUMENTS_MAX_DOCUMENTS", positive;
        /// Bytes of their texts, in UTF-8; `None` means unbounded.
        max_text_bytes: Option<u64> = None, "PERIHELION_DOCUMENTS_MAX_TEXT_BYTES", if_any(positive);
        /// Searchable chunks; `None` means unbounded.
        max_chunks: Option<u64> = None, "PERIHELION_DOCUMENTS_MAX_CHUNKS", if_any(positive);
        /// Documents without changes for this long are deleted, hourly by a service; `None` means never.
        max_age: Option<Age> = None, "PERIHELION_DOCUMENTS_MAX_AGE", any;
        /// The weight of keyword search when a search fuses its results with vector search.
        weight_of_words: f64 = 1.0, "PERIHELION_DOCUMENTS_WEIGHT_OF_WORDS", positive;
        /// How much meaning counts there.
        weight_of_meaning: f64 = 1.0, "PERIHELION_DOCUMENTS_WEIGHT_OF_MEANING", positive;
        /// Program, or address of a docling-serve, for documents in which our parser finds no text or whose format it
        /// does not know; without one, these are rejected.
        parser: Option<OtherParser> = None, "PERIHELION_DOCUMENTS_PARSER", any;
        /// File name endings whose documents it always reads.
        parser_for: Names = Names::default(), "PERIHELION_DOCUMENTS_PARSER_FOR", any;
        /// Seconds that it may take for a document.
        parser_timeout_sec: f64 = 300.0, "PERIHELION_DOCUMENTS_PARSER_TIMEOUT_SEC", seconds;
        /// Languages in which Tesseract recognizes the text of scans and pictures, by its names; none turns it off.
        scan_languages: Names = Names(vec!["eng".to_owned()]), "PERIHELION_DOCUMENTS_SCAN_LANGUAGES", any;
        /// Seconds that this may take for a document; then further pages stay unread.
        scan_timeout_sec: f64 = 600.0, "PERIHELION_DOCUMENTS_SCAN_TIMEOUT_SEC", seconds;
    }
}

/// The parser for documents that ours cannot read.
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
            // A name alone is that of a program in PATH.
            Self::Program(path) if path.components().count() > 1 => {
                Self::Program(path.placed_in(directory))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!("30d".parse::<Age>().unwrap(), Age(TimeDelta::days(30)));
        assert_eq!(" 8w ".parse::<Age>().unwrap(), Age(TimeDelta::weeks(8)));
        for wrong in ["", "d", "30", "-1d", "1y", "3é", "99999999999d"] {
            assert!(wrong.parse::<Age>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_names_a_server_and_anything_else_a_program() {
        let read = OtherParser::from_text;
        let program = read("./read.sh").unwrap().placed_in(Path::new("/etc/p"));
        assert_eq!(program, OtherParser::Program("/etc/p/./read.sh".into()));
        let installed = read("read-scans").unwrap().placed_in(Path::new("/etc/p"));
        assert_eq!(installed, OtherParser::Program("read-scans".into()));
        let server = read("http://localhost:5001").unwrap().placed_in(Path::new("/etc/p"));
        assert_eq!(server, OtherParser::Docling("http://localhost:5001".to_owned()));
        for wrong in ["ftp://localhost", "https://user:word@host", "http://"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
