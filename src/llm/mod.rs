//! Talks to language models: one trait, one OpenAI-compatible adapter, structured answers, prompts.
//!
//! Enter at [`ChatModel`]. Invariant: nothing here knows of graphs, threads' states or journals; a
//! request is plain data that can be hashed and stored. Deliberately absent: retry of *answers*
//! outside [`structured`], and any provider's own SDK types in the public interface.

pub mod openai;
mod types;

pub use openai::OpenAiModel;
pub use types::{
    ChatMessage, ChatModel, ChatRequest, ChatResponse, Error, MessageRole, OutputFormat, Role,
    TokenSink, ToolCall, ToolSpec, Usage,
};
