//! Why an answer to an open question is refused.

use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_mcp as mcp;

/// Why an answer fits no open question.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AnswerError {
    #[error(
        "thread {0} has no open question; to continue it, run `perihelion resume` without an answer"
    )]
    NothingOpen(ThreadId),
    #[error("question {id} is not open in this thread. Open questions: {open}")]
    NotOpen { id: InterruptId, open: String },
    #[error("{given} is an answer to {fits}, but the open question {id} is of kind {kind}")]
    WrongKind { given: &'static str, fits: String, kind: String, id: InterruptId },
    #[error("invalid answer to a question of kind {kind}: expected {wanted}, got {given}")]
    WrongForm { kind: String, wanted: &'static str, given: String },
    /// The approved arguments are the ones that are sent: as shown, or as the person edited them. Anything else would
    /// be lost.
    #[error(
        "invalid approval; it can contain a decision, a reason and edited arguments, but not: {0}"
    )]
    Beside(String),
    #[error("the answer does not match the form: {0}")]
    Unfit(#[from] mcp::FormError),
    #[error("several questions are open; select one with --interrupt: {0}")]
    Ambiguous(String),
}
