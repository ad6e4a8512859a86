//! The stored words, which are also the ones on the wire.

use perihelion_database::stored_words;
use schemars::JsonSchema;

stored_words! {
    /// How a run stands.
    #[derive(JsonSchema)]
    RunStatus {
        Pending = "pending",
        Running = "running",
        /// It ended, or waits for a person: the thread has the details.
        Success = "success",
        Error = "error",
        Timeout = "timeout",
        /// It was stopped.
        Interrupted = "interrupted",
    }
}

stored_words! {
    /// The handling of a run on a busy thread.
    #[derive(JsonSchema)]
    Multitask {
        Enqueue = "enqueue",
        Reject = "reject",
        Interrupt = "interrupt",
        Rollback = "rollback",
    }
}

stored_words! {
    /// How a run must be stopped.
    #[derive(JsonSchema)]
    Cancel {
        /// It is stopped, and its results stay.
        Interrupt = "interrupt",
        /// It is stopped, and its thread returns to its earlier step.
        Rollback = "rollback",
    }
}

impl RunStatus {
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}
