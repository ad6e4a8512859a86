//! Documents: stored, searched and cited.
//!
//! Enter at [`Library`], which lists, reads and deletes, and at [`Library::retrieve`]. A document is one canonical
//! text; its *children* are found by words and by meaning, its *parents* are read around a hit, and both are ranges of
//! that text. Adding is a list of steps ([`Library::prepare`], [`Library::describe`], [`Library::stage`],
//! [`Library::embed_batch`], [`Library::flip`]), so that each request to a model can be a separate effect of a run.
//!
//! Invariants: a library has one [`Scope`], and stores, finds and reads only within it. A citation's quote is
//! `text[start..end]`, counted in characters. Deleted documents are not found from that moment on, and no byte of them
//! remains. Deliberately absent: models (they are asked through [`Describer`], [`Reranker`] and [`EmbeddingModel`]),
//! and any knowledge of runs.

mod attempt;
mod child;
mod describe;
mod embedding;
mod error;
mod evaluate;
mod external;
mod flip;
mod library;
mod page;
mod prepare;
mod question;
mod record;
mod remove;
mod retrieve;
mod segments;
mod usage;

pub use attempt::Attempt;
pub use child::Parser;
pub use describe::Describer;
pub use error::Error;
pub(crate) use error::Result;
pub use evaluate::{Asking, Judgement, Measures, read_judgements};
pub use external::{Docling, External, Reader, ends_in};
pub use library::{Library, Read};
pub use page::{DocumentPage, PageAt};
pub use perihelion_parse::{self as parse, Limits, Tesseract};
pub use perihelion_recall::{EmbeddingError, EmbeddingModel, Scope, Weights};
pub use prepare::{Input, Prepared, Step, stored_title};
pub use question::{Filters, Query, Reranker, reordered, significant_words};
pub use record::{Description, Document};
pub use remove::Deleted;
pub use retrieve::{Found, Passage, Retrieved, Source};
pub use usage::{Quotas, Room, Usage};

/// The collection that documents lie in unless another one is named.
pub const COLLECTION: &str = "default";
