//! Adding documents, each on a durable thread: it continues after a kill at any point, and no model call is paid twice.
//!
//! Enter at [`DocumentThreads`]. The graph is `parse → describe → embed → keep`; each request to a model is an effect. Invariant: a
//! thread holds where its document comes from and what became of it, never a word of it, so that a deleted document is
//! in no thread. Deliberately absent: the documents themselves, which the crate `perihelion-documents` keeps.

mod adding;
mod models;
mod nodes;
mod opening;
mod threads;

pub use adding::{Listener, Reading};
pub use models::{DocumentModel, summarizer};
pub use nodes::{Document, Work};
pub use opening::{OWNER, TENANT, embeddings, library_of, parser};
pub use threads::{AddedDocument, DocumentThreads, Error, NewDocument};
