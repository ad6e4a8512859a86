//! Teams: stars within the star, designed at run time (S1.10).
//!
//! Enter at [`TeamAgent`], an agent whose node runs its own star over a roster restricted to the team's servers: with
//! its own supervisor, reflection, circuit breaker and QA, and its steps below the parent's. Invariants: a team's
//! supervisor sees another team only if its design names it, at most three levels deep and never itself. Started work
//! keeps its design. Open-world content stays marked. [`design`] has the architect make one, for a person or as an
//! agent of the star ([`Architect`]). Deliberately absent: their storage.

mod agent;
mod design;
mod drawing;
mod founding;
mod outcome;

pub use agent::TeamAgent;
pub use design::{Material, Team, TeamDesign, TeamMember, clean_name};
pub use founding::Architect;
pub use founding::{Brief, design};

pub(super) const GONE: &str = "there is no team of this name; create or import it again";

pub const ARCHITECT: &str = "architect";

pub const TEAM_PREFIX: &str = "team_";
