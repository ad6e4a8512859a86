//! What of a server is trusted: pins of what it says, the rules around its calls, characters that nobody sees.
//!
//! Enter at [`Pins`] and `CallPolicy::of`. Invariant: the operator's word goes before the server's, and a server's word about
//! itself loosens nothing. Deliberately absent: asking the server; what is judged here was said before.

mod call_policy;
pub(super) mod hidden;
mod pins;

pub use hidden::{is_invisible, shown, written_out};
pub(super) use pins::Untrusted;
pub use pins::{Change, Changes, Pins, ServerPin, ToolPin};
