//! How what a store keeps stands, by the words that are stored.

use perihelion_database::stored_words;

stored_words! {
    /// Where a thread stands between and during runs.
    ThreadStatus {
        /// Never run, or its last run is done.
        Idle = "idle",
        /// A run is under way, or was when its process died (then the lease has run out).
        Busy = "busy",
        /// Handed to the workers: anyone who claims it first continues with it.
        Queued = "queued",
        /// Waits for a person's answer.
        Interrupted = "interrupted",
        /// The last run failed; a resume tries the failed step again.
        Failed = "failed",
        /// The next node does not exist in this graph; a resume continues once it is back.
        Parked = "parked",
    }
}

stored_words! {
    /// How a run stands.
    RunStatus {
        Running = "running",
        /// It ended for another to continue: submitted to the workers, or handed over by one that stopped.
        Queued = "queued",
        Done = "done",
        Interrupted = "interrupted",
        Failed = "failed",
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
    /// What kind of outside thing an effect touched.
    EffectKind {
        Model = "model",
        Tool = "tool",
        Clock = "clock",
        Random = "random",
        /// A question to a person; its key is the [`InterruptId`].
        Interrupt = "interrupt",
        /// What a node observed; only a replay reads it back.
        Observed = "observed",
    }
}

stored_words! {
    /// How an effect stands.
    EffectStatus {
        /// Recorded before it was sent (a tool call), or asked and not yet answered (an interrupt).
        Started = "started",
        /// The outcome is recorded.
        Done = "done",
        /// It failed in a way that is part of the record.
        Failed = "failed",
    }
}
