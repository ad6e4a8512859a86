//! A call on an open connection: sent once, bounded, and judged by its response.
//!
//! Enter at [`round::send`] and [`task::TaskCall`]. Invariant: "not sent" is reported only for a call that certainly
//! did not run. Deliberately absent: the server's life cycle; a round returns its findings as a value
//! ([`round::RoundOutcome`]).

pub(super) mod elicitation;
pub(super) mod form;
pub(super) mod outcome;
pub(super) mod round;
pub(super) mod task;
