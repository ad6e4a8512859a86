//! Statuses and kinds of stored rows, by the words that are stored.

use perihelion_database::stored_words;

stored_words! {
    /// The status of a thread, between and during runs.
    ThreadStatus {
        /// Never run, or its last run is done.
        Idle = "idle",
        /// A run is active, or its process died (then the lease has expired).
        Busy = "busy",
        /// It waits for a worker; the first worker that claims it continues it.
        Queued = "queued",
        /// It waits for a person's answer.
        Interrupted = "interrupted",
        /// The last run failed; a resume tries the failed step again.
        Failed = "failed",
        /// The next node does not exist in this graph; a resume continues once it is back.
        Parked = "parked",
    }
}

stored_words! {
    /// The status of a run.
    RunStatus {
        /// It is active.
        Running = "running",
        /// Another run continues it: it was submitted to the workers, or its process stopped.
        Queued = "queued",
        /// It reached the end of the graph.
        Done = "done",
        /// It waits for a person.
        Interrupted = "interrupted",
        /// It failed.
        Failed = "failed",
        /// It was stopped.
        Cancelled = "cancelled",
    }
}

stored_words! {
    /// What made a step.
    StepKind {
        /// A new input to the thread.
        Input = "input",
        /// A super-step of the graph.
        Loop = "loop",
        /// An edit of the state, as if a node had written it.
        Edit = "edit",
        /// A return to an earlier step of the same thread: the state is that step's, and so is what runs next.
        Fork = "fork",
    }
}

stored_words! {
    /// The kind of an effect.
    EffectKind {
        /// A model call.
        Model = "model",
        /// A tool call, or another action.
        Tool = "tool",
        /// A reading of the clock.
        Clock = "clock",
        /// A random number.
        Random = "random",
        /// A question to a person; its key is the [`InterruptId`].
        Interrupt = "interrupt",
        /// An observation of a node; only a replay reads it back.
        Observed = "observed",
    }
}

stored_words! {
    /// The status of an effect.
    EffectStatus {
        /// Recorded before it was sent (a tool call), or asked and not yet answered (an interrupt).
        Started = "started",
        /// The outcome is recorded.
        Done = "done",
        /// It failed in a way that is part of the record.
        Failed = "failed",
    }
}
