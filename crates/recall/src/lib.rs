//! One index for everything that is looked up by words or by meaning: tools, endpoints, schemas, skills, memories,
//! documents.
//!
//! Enter at [`StoredIndex`], the index in the database, and at [`WordIndex`] for texts in memory. Both read text
//! with the same analyser ([`words`]), count with the same BM25 ([`bm25`]) and so give the same list. An [`Item`] is
//! text with attributes. Its [`Scope`] (tenant, owner) and kind are its place, and items are put, found or removed only
//! with one. Vector search needs vectors: the caller asks an [`EmbeddingModel`] and passes them in, so that the request
//! is an effect like any other in a run; without vectors only keyword search works.
//!
//! Invariants: items of one scope have no influence on results in another one, not even through statistics. Filters are
//! applied before ranking. Removed items are not found from that moment on, and no byte of them remains. Deliberately
//! absent: any network, and any knowledge of the meaning of items.

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
pub(crate) use error::Result;
pub use fuse::fuse;
pub use item::{Field, Item, Scope};
pub use memory::WordIndex;
pub use search::{Filter, Found, Hit, QueryVector, Search, Weights};
pub use store::{Generation, Kept, Pending, StoredIndex};
pub use vector::{
    ContentHash, EmbeddingError, EmbeddingModel, content_hash, cosine, embed_each, embed_pending,
};
