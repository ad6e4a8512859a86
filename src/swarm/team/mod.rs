//! Teams: stars within the star, designed at run time (S1.10).
//!
//! Enter at [`TeamAgent`], an agent whose node runs a star of its own over a roster restricted to the team's servers: its own
//! supervisor, reflection, circuit breaker and QA, its steps below the parent's. Invariants: a team's supervisor sees no team, so teams are
//! one deep; work that has begun keeps the design that it began with; what the open world had a part in stays marked.
//! Deliberately absent: where designs come from and where they are kept.

mod agent;
mod design;
mod drawing;
mod node;
mod outcome;

pub use agent::TeamAgent;
pub use design::{Team, TeamDesign, TeamMember, clean_name};

/// How the names of agents begin that are teams.
pub const TEAM_PREFIX: &str = "team_";
