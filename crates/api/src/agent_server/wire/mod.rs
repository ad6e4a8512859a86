//! Our types in the shapes of the Agent Server API, and its requests as our types; only this module knows both.

mod assistant;
mod choices;
mod events;
mod interrupt;
mod message;
mod modes;
mod request;
mod run;
mod state;
mod thread;

pub(super) use assistant::{schemas, shown as shown_assistant};
pub(super) use choices::{IfNotExists, OnCompletion, OnDisconnect, OneOrMany, SortOrder};
pub(super) use events::of as events_of;
pub(super) use interrupt::{shown_all as shown_interrupts, task_id, value as asked_value};
pub(crate) use message::content_text as text_of_content;
pub(super) use modes::{BEFORE_ENDS, Modes, Wire};
pub(super) use request::RunBody;
pub(super) use run::{Asked, graph_of, shown as shown_run, without_user};
pub(super) use state::{
    Update, Values, named_checkpoint, named_subgraph, output, read_update, shown_checkpoint, values,
};
pub(super) use thread::{
    Fields, empty_state, show_hosted, shown as shown_thread, snapshot, source, step_metadata,
};
