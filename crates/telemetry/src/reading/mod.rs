//! What readers of traces see beside the spans: what was spent where, how the run went, what changed.
//!
//! Everything here is computed from spans and, for [`Finder`], from the store; nothing is kept for it, so
//! no step pays for being readable.

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
