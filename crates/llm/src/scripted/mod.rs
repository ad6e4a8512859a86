//! A scripted model: an OpenAI-compatible endpoint on loopback that answers by rules.
//!
//! Enter at [`ScriptedModel::start`] with a [`Script`]. `perihelion demo` runs on it, and so do tests, over
//! real HTTP. Invariant: a script that matches on what the request says (`contains`,
//! `after_tool_results`) answers alike in a fresh process, so that a resumed run finds the same model;
//! `nth` and `times` count in this process only. Deliberately absent: any pretence of intelligence.

mod choose;
mod embeddings;
mod native;
mod reply;
mod script;
mod server;

pub use choose::RecordedRequest;
pub use script::{Reply, Rule, Script, ScriptedCall, TextOrTexts};
pub use server::{ScriptedModel, ScriptedServer};
