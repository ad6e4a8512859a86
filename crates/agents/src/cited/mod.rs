//! What kinds of agents share that answer from passages: what a passage is, the ranking, the answer with its citations.
//!
//! Invariant: an answer rests on passages alone, and each `[n]` in it names one. Deliberately absent: where passages come
//! from, which is the business of each kind.

mod answer;
mod passage;
mod rerank;

pub(super) use self::answer::{NOTHING, answer, finding, nothing, write};
pub(super) use self::passage::Passage;
pub(super) use self::rerank::rerank;

perihelion_engine::graph_state! {
    /// What the stages hand on.
    pub struct Work, update WorkUpdate, version 1 {
        /// Best first.
        passages: Vec<Passage> => overwrite,
        /// Why nothing was found, where the search failed in part.
        remarks: Vec<String> => overwrite,
    }
}

/// Passages that are ranked, and those of them that are read.
pub(super) const CANDIDATES: usize = 20;
const READ: usize = 8;
