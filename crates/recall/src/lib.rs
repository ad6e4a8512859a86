//! One index for everything that is looked up by words or by meaning: tools, endpoints, schemas, skills, memories,
//! documents.
//!
//! Enter at [`StoredIndex`], the [`Index`] in the database, and at [`WordIndex`] for what a process knows anyway. Both read
//! text with the same analyser ([`words`]), count with the same BM25 ([`bm25`]) and so give the same list. An [`Item`] is
//! text with attributes; its [`Scope`] (tenant, owner) and kind say where it lies, and nothing can be put, found or
//! removed without one. What is found by meaning needs vectors: the caller asks an [`EmbeddingModel`] and hands them over, so that
//! the request is an effect like any other where a run makes it; without vectors everything works by words.
//!
//! Invariants: what lies in one scope has no influence on what is found in another, not even through statistics; filters
//! are applied before anything is ranked; what was removed is found by nobody from that moment on and leaves no byte.
//! Deliberately absent: any network, and any knowledge of what the items are.

pub mod bm25;
mod error;
mod fuse;
mod item;
mod memory;
mod posting;
mod search;
mod store;
mod vector;
pub mod words;

pub use error::Error;
pub use fuse::fuse;
pub use item::{Field, Item, Scope};
pub use memory::WordIndex;
pub use search::{Filter, Found, Hit, Index, QueryVector, Search, Weights};
pub use store::{Generation, Kept, Pending, StoredIndex};
pub use vector::{
    ContentHash, EmbeddingError, EmbeddingModel, content_hash, cosine, embed_pending,
};
