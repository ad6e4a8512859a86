//! Shapes a tool's answer: data for programs, text for the model.

use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use serde::Serialize;

/// Answers with structured data and the text that says the same to a model.
pub fn answer<T: Serialize>(data: &T, text: String) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    // Our own types hold nothing that JSON cannot carry; without data the text still answers.
    result.structured_content = serde_json::to_value(data).ok();
    result
}

/// Answers with a failure that the model can read and repair.
pub fn failure(error: &impl std::fmt::Display) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())])
}

/// Describes a bundled server: its tools never change while it runs.
pub fn config(name: &str, title: &str, instructions: String) -> ServerConfig {
    let mut about = Implementation::new(format!("perihelion-{name}"), env!("CARGO_PKG_VERSION"));
    about.title = Some(title.to_owned());
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(about)
        .with_instructions(instructions)
}
