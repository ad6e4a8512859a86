//! Teams: stars within the star, designed at run time (S1.10).
//!
//! Enter at [`TeamAgent`], an agent whose node runs a star of its own over a roster restricted to the team's servers: its own
//! supervisor, reflection, circuit breaker and QA, its steps below the parent's. Invariants: a team's supervisor sees a team only where its
//! design names it, at most three deep and never itself; work that has begun keeps the design that it began with; what the open world had a part in stays marked.
//! [`design`] has the architect make one, for a person or as an agent of the star ([`Architect`]). Deliberately absent: where they are kept.

mod agent;
mod design;
mod drawing;
mod founding;
mod outcome;

pub use agent::TeamAgent;
pub use design::{Material, Team, TeamDesign, TeamMember, clean_name};
pub use founding::Architect;
pub use founding::{Brief, design};

/// The name by which the supervisor chooses the architect.
pub const ARCHITECT: &str = "architect";

/// How the names of agents begin that are teams.
pub const TEAM_PREFIX: &str = "team_";
