//! The runner as users rely on it, on every store: crashes, questions, calls, limits, history.

mod actions;
mod blobs;
mod crashes;
mod damage;
mod durability;
mod edits;
mod events;
mod going_back;
mod holders;
mod integrity;
mod interrupts;
mod limits;
mod notes;
mod parking;
mod pauses;
mod replay;
mod snapshots;
mod subgraphs;
pub mod world;
