//! Answers from the web: searches, reads several pages at once, and cites page and quote.
//!
//! Enter at [`kind`]. Stages: `search → fetch → rerank → answer`. Invariant: only addresses of the task or of search
//! results are fetched, and an address that the supervisor invented needs an approval; a page is data. Deliberately
//! absent: following the links of pages, which the plain kind does, one by one and gated.

mod fetch;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cited;
use super::pipeline::{Kind, Pipeline};

pub(super) use self::cited::{Passage, Work, WorkUpdate};

/// Pages that are read for one task.
const PAGES: usize = 5;

/// A page that may answer, as the search shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Hit {
    title: String,
    url: String,
    snippet: String,
}

pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Work>::new("web")
        .about("answers from pages of the web, with address and quote")
        .optional_tool("search", "finds pages by words")
        .tool("fetch", "reads one page")
        .profile("web", &[("search", "search"), ("fetch", "fetch")])
        .natural_for("web")
        .template("documents_rerank", include_str!("../../../../prompts/documents_rerank.md"))
        .template("documents_answer", include_str!("../../../../prompts/documents_answer.md"))
        .stage("search", fetch::search)
        .stage("fetch", fetch::fetch)
        .stage("rerank", cited::rerank)
        .stage("answer", cited::answer)
        .into_kind()
}
