//! Makes effects happen once: records what nodes do to the outside, and reads it back after a crash.
//!
//! Enter at [`TaskJournal`], the [`Port`](crate::graph::Port) of one running task. Invariants: an action's intent is
//! durable before it is sent. A recorded outcome is never requested again, and a recorded failure only by a retry of
//! its node. An action whose outcome is unknown is repeated only if the operator declared it repeatable; otherwise a
//! person decides. Deliberately absent: any knowledge of models and tools; it records names and JSON.

mod key;
mod perform;
mod recorded;
mod task;
mod unknown;

pub use key::{EffectKey, verify_dump, verify_keys};
pub use perform::REPEATS;
pub use recorded::{Missed, Recorded, by_step};
pub use task::{Claimed, Live, Mode, TaskJournal};
pub use unknown::{NoVerdict, OUTCOME_UNKNOWN, OutcomeUnknown, Verdict, check_answer};
