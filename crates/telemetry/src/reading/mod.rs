//! Data for readers of traces in addition to the spans: usage, routes, changes.
//!
//! Everything here is computed from spans and, for [`Finder`], from the store; it adds no stored data, so it costs a
//! run no time.

mod attempts;
mod diff;
mod events;
mod finder;
mod kept;
mod overview;
mod page;

pub use attempts::{Note, NoteKind, notes};
pub use diff::{Change, Pair, PairKind, TraceDiff, compare};
pub use events::{Event, EventKind, events};
pub use finder::{Finder, Found, Operation, Query};
pub use overview::{AgentShare, Hop, Overview, Spent, bill, overview};
pub use page::page;
