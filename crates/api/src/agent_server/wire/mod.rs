//! Our types in the shapes of the Agent Server API, and its requests as our types; nothing else knows either.

mod assistant;
mod checkpoint;
mod choices;
mod defaults;
mod events;
mod interrupt;
mod message;
mod request;
mod run;
mod state;
mod thread;

pub(crate) use assistant::id_of as assistant_of;
pub(super) use assistant::{
    default_assistant, is_graph, schemas, shown as shown_assistant, team_assistant,
};
pub(super) use checkpoint::{checkpoint_id, named_step, step_of};
pub(super) use choices::{IfNotExists, OnCompletion, OnDisconnect, OneOrMany, SortOrder};
pub(super) use events::{Modes, Wire};
pub(super) use interrupt::{shown_all as shown_interrupts, task_id, value as asked_value};
pub(crate) use message::content as text_of_content;
pub(super) use request::{RunBody, state_update};
pub(super) use run::{failure, shown as shown_run};
pub(super) use state::{update as shown_update, values};
pub(super) use thread::{
    Fields, empty_state, made_by, shown as shown_thread, snapshot, source, step_metadata,
};
