//! Why an answer to an open question is refused.

use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_mcp as mcp;

/// Why an answer fits no open question.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AnswerError {
    #[error(
        "the thread {0} has no open question; `perihelion resume` without options continues it"
    )]
    NothingOpen(ThreadId),
    #[error("the interrupt {id} is not open in this thread; open: {open}")]
    NotOpen { id: InterruptId, open: String },
    #[error("{given} answers {fits}, but the open question is of kind {kind}: {id}")]
    WrongKind { given: &'static str, fits: String, kind: String, id: InterruptId },
    /// Recording it would leave the thread with an answer that nobody can use.
    #[error("the answer to a question of kind {kind} must be {wanted}, not: {given}")]
    WrongForm { kind: String, wanted: &'static str, given: String },
    /// What was approved is what is sent: as it was shown, or as the person edited it. Anything else would be lost.
    #[error(
        "an approval is of the call as it was shown: its answer has a decision, a reason and edited arguments, and not: {0}"
    )]
    Beside(String),
    /// The server's form does not take it.
    #[error("the answer does not fit the form of the question: {0}")]
    Unfit(#[from] mcp::FormError),
    #[error("several questions are open; name one with --interrupt: {0}")]
    Ambiguous(String),
}
