//! Trust in a server: pins of its definitions, the rules of its calls, invisible characters.
//!
//! Enter at [`Pins`] and `CallPolicy::of`. Invariant: the operator's declaration precedes the server's, and a server's
//! own hints never relax a rule. Deliberately absent: asking the server; this module judges known definitions.

mod call_policy;
pub(super) mod hidden;
mod pins;

pub use hidden::{is_invisible, shown, written_out};
pub(super) use pins::Untrusted;
pub use pins::{Change, Changes, Pins, ServerPin, ToolPin};
