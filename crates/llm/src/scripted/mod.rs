//! A scripted model: an OpenAI-compatible endpoint on loopback that answers by rules.
//!
//! Enter at [`ScriptedModel::start`] with a [`Script`]. `perihelion demo` runs on it, and so do tests, over real HTTP.
//! Invariant: a script that matches the content of requests (`contains`, `after_tool_results`) answers the same in a
//! new process, so a resumed run gets the same answers; `nth` and `times` count in this process only. Deliberately
//! absent: any pretence of intelligence.

mod choose;
mod embeddings;
mod reply;
mod script;
mod server;

pub use choose::RecordedRequest;
pub use script::{Reply, Rule, Script, ScriptedCall};
pub use server::{ScriptedModel, ScriptedServer};
