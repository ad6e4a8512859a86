//! Teams as designs that are kept, in versions (S1.10).
//!
//! Enter at [`Workflows`]. Invariant: a version that is kept never changes. Deliberately absent: how a team is designed and how it works, which
//! are the star's part ([`perihelion_star::design`], [`perihelion_star::TeamAgent`]).

mod kept;

pub use kept::{KeptTeam, Workflows};
