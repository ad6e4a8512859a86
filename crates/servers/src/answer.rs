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

/// Answers with what a tool made of its input, or with why it made nothing of it.
pub fn respond<T: Serialize>(
    done: Result<T, impl std::fmt::Display>,
    text: impl FnOnce(&T) -> String,
) -> CallToolResult {
    match done {
        Ok(data) => answer(&data, text(&data)),
        Err(error) => failure(&error),
    }
}

/// Writes lines one after another, or says that there is none.
pub fn lines(lines: impl Iterator<Item = String>, between: &str, none: &str) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { none.to_owned() } else { lines.join(between) }
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
