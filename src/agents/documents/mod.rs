//! Documents in, cited answers out: searches, ranks what it found, reads around the best, answers with citations.
//!
//! Enter at [`kind`]. Stages: `search → rerank → read → answer`. Invariant: an answer rests on passages alone, each `[n]` in
//! it names one, and without a passage it says that the documents do not say. Deliberately absent: adding and
//! deleting documents, which are tools of the same server for the plain kind.

mod answer;
mod passage;
mod read;
mod rerank;
mod search;

use std::sync::Arc;

use self::passage::Passage;
use super::pipeline::{Kind, Pipeline, Role};

crate::graph_state! {
    /// What the stages hand on.
    pub struct Work, update WorkUpdate, version 1 {
        /// Best first.
        passages: Vec<Passage> => overwrite,
        /// Why nothing was found, where the search failed in part.
        remarks: Vec<String> => overwrite,
    }
}

/// Passages that are ranked, and those of them that are read.
const CANDIDATES: usize = 20;
const READ: usize = 8;

/// Returns the kind.
pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Work>::new("documents")
        .about("answers from documents, with page, section and quote")
        .tool("search", "finds passages that answer a question")
        .optional_tool("read", "reads a document between two places")
        .profile("documents", &[("search", "search_documents"), ("read", "read_document")])
        .natural_for("documents")
        .template("documents_rerank", include_str!("../../../prompts/documents_rerank.md"))
        .template("documents_answer", include_str!("../../../prompts/documents_answer.md"))
        .model(Role::Reranker, "rerank", "rerank")
        .stage("search", search::search)
        .stage("rerank", rerank::rerank)
        .stage("read", read::read)
        .stage("answer", answer::answer)
        .into_kind()
}
