//! Kinds of agents: how the agent of an MCP server works, by the word after `agent =` in its table.
//!
//! Enter at [`kinds`]. Each kind is a module below this one, with one stage per file; `docs/guides/custom-agents.md`
//! explains how to write one. Invariant: an agent of any kind reaches models, tools and people through the star alone.
//! Deliberately absent: the plain kind, `tools`, which the star itself falls back to.

mod analyst;
mod api;
mod cited;
mod documents;
mod lenient;
mod mail;
mod python;
mod web;

use std::sync::Arc;

pub use analyst::knowledge_of;
pub use perihelion_star::pipeline;
use perihelion_star::{Kinds, ToolLoop};

pub fn kinds() -> Kinds {
    Kinds::new(Arc::new(ToolLoop))
        .with(analyst::kind())
        .with(api::kind())
        .with(documents::kind())
        .with(mail::kind())
        .with(python::kind())
        .with(web::kind())
}
