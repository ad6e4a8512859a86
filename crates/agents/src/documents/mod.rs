//! Answers from documents with citations: searches, ranks the results, reads around the best, and answers.
//!
//! Enter at [`kind`]. Stages: `search → rerank → read → answer`; repeated subjects of a task are compared, each side
//! searched separately. Invariant: an answer rests on passages alone, each `[n]` in it names one, and without a passage
//! it says that the documents do not say. Deliberately absent: adding and deleting documents, which are tools of the
//! same server for the plain kind.

mod filters;
mod list;
mod search;

use std::sync::Arc;

use super::cited::{self, Work};
use super::pipeline::{Kind, Pipeline};

pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Work>::new("documents")
        .about("answers from documents, with page, section and quote")
        .tool("search", "finds passages that answer a question")
        .optional_tool("read", "reads a document between two places")
        .optional_tool("list", "lists the documents")
        .profile(
            "documents",
            &[
                ("search", "search_documents"),
                ("read", "read_document"),
                ("list", "list_documents"),
            ],
        )
        .natural_for("documents")
        .template("documents_rerank", include_str!("../../../../prompts/documents_rerank.md"))
        .template("documents_answer", include_str!("../../../../prompts/documents_answer.md"))
        .stage("search", search::search)
        .stage("rerank", cited::rerank)
        .stage("read", search::read)
        .stage("answer", list::answer)
        .into_kind()
}
