//! Teams as designs: made of a goal by the architect, kept in versions (S1.10).
//!
//! Enter at [`design`] and [`Workflows`]. Invariants: no design is handed out that names a server which is not there; a version that is kept
//! never changes. Deliberately absent: how a team works, which is the star's part ([`crate::swarm::TeamAgent`]).

mod architect;
mod kept;

pub use architect::{Brief, design};
pub use kept::{KeptTeam, Workflows};
