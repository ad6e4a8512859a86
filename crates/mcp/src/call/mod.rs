//! A call on an open connection: sent once, bounded, and judged by what came back.
//!
//! Enter at [`round::send`] and [`task::TaskCall`]. Invariant: "not sent" is said only of a call that certainly did not
//! run. Deliberately absent: the server's life; what a round says of it is told as a value ([`round::Health`]).

pub(super) mod elicitation;
pub(super) mod failure;
pub(super) mod form;
mod outcome;
pub(super) mod rate;
pub(super) mod round;
pub(super) mod task;
