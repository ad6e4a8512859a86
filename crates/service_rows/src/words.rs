//! The words that are stored, as they stand on the wire.

use serde::{Deserialize, Serialize};

use crate::Error;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Returns the word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads the word.
            ///
            /// # Errors
            /// [`Error::UnknownWord`].
            pub fn from_word(text: &str) -> Result<Self, Error> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    other => Err(Error::UnknownWord { what: $what, found: other.to_owned() }),
                }
            }
        }
    };
}

words! {
    /// How a run stands.
    RunStatus, "status of a run" {
        Pending = "pending",
        Running = "running",
        /// It ended, or waits for a person: then the thread says so.
        Success = "success",
        Error = "error",
        Timeout = "timeout",
        /// It was stopped.
        Interrupted = "interrupted",
    }
}

words! {
    /// What happens to a run that finds its thread at work.
    Multitask, "multitask strategy" {
        Enqueue = "enqueue",
        Reject = "reject",
        Interrupt = "interrupt",
        Rollback = "rollback",
    }
}

words! {
    /// How a run is to be stopped.
    Cancel, "way of cancelling" {
        /// It is stopped, and what it did is kept.
        Interrupt = "interrupt",
        /// It is stopped, and its thread stands as before it.
        Rollback = "rollback",
    }
}

impl RunStatus {
    /// Returns whether nothing more happens to the run.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}
