//! Talks to language models: one trait, one adapter for three wires, structured answers, prompts.
//!
//! Enter at [`ChatModel`]. Invariant: this crate knows no graphs, threads' states or journals; a request is plain data
//! that can be hashed and stored. Deliberately absent: retry of *answers* outside [`structured`], and any provider's
//! own SDK types in the public interface.

mod attached;
mod bounds;
mod cleaning;
mod error;
mod fit;
mod marks;
mod native;
pub mod openai;
mod prompts;
mod pythonic;
mod repetition;
mod schema;
pub mod scripted;
pub mod structured;
mod types;
mod written_calls;

pub use attached::{Attached, data_url, is_text};
pub use error::Error;
pub use openai::OpenAiModel;
pub use perihelion_recall::{EmbeddingError, EmbeddingModel};
pub use prompts::{Prompts, clip, escape, line};
pub use schema::{strict_schema, unbounded};
pub use structured::{Structured, ask, ask_as, ask_checked};
pub use types::{
    ChatMessage, ChatModel, ChatRequest, ChatResponse, Manner, MessageRole, OutputFormat, Role,
    TokenSink, ToolCall, ToolSpec, Usage,
};
