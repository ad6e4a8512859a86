//! Why a document could not be stored, found or read.

/// Why a document could not be stored, found or read; the text contains the next step for the reader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {source}")]
    Parse { path: String, source: perihelion_parse::Error },
    #[error("cannot read {path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error("no such document: {0}; list the documents to find its ID")]
    Unknown(String),
    #[error("{given} matches several documents: {candidates}; pass the whole ID")]
    Ambiguous { given: String, candidates: String },
    #[error("the range {start}..{end} is outside the document, which has {length} characters")]
    Range { start: usize, end: usize, length: usize },
    #[error("the document has no page {number}; its last is {last}")]
    Page { number: u32, last: u32 },
    #[error("the question is empty")]
    EmptyQuery,
    #[error("a collection's name is 1 to 64 letters, digits, `-`, `_` or `.`: {0}")]
    Collection(String),
    /// A quota of the tenant; `what` of it is full, which the setting `key` of the section `documents` bounds.
    #[error(
        "the quota of {what} is exceeded: {used} used, {more} more needed, {permitted} allowed; delete documents or raise documents.{key}"
    )]
    Full { what: &'static str, key: &'static str, used: u64, more: u64, permitted: u64 },
    #[error("the parser in documents.parser cannot read {path} ({parser}): {source}")]
    External { path: String, parser: String, source: crate::external::Failure },
    #[error("cannot start the parser: {0}")]
    Parser(std::io::Error),
    #[error("the stored document {id} is damaged ({what}); add it again")]
    Damaged { id: String, what: String },
    #[error("cannot read line {line} of the judgements: {reason}")]
    Judgement {
        line: usize,
        #[source]
        reason: perihelion_database::Cause,
    },
    #[error(transparent)]
    Recall(#[from] perihelion_recall::Error),
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn class(&self) -> &str {
        match self {
            Self::Parse { source, .. } => source.class(),
            Self::File { .. } => "file",
            Self::Unknown(_) | Self::Ambiguous { .. } => "unknown",
            Self::Range { .. } | Self::Page { .. } => "range",
            Self::EmptyQuery => "empty_query",
            Self::Collection(_) => "collection",
            // One document more, or a document that is too large for what is left.
            Self::Full { what: "documents", .. } => "too_many",
            Self::Full { .. } => "full",
            Self::External { .. } => "external_parser",
            Self::Parser(_) => "parser",
            Self::Damaged { .. } => "damaged",
            Self::Judgement { .. } => "judgement",
            Self::Recall(_) | Self::Database(_) => "database",
        }
    }
}
