//! Ways to be wrong, one for each invariant: a checker that finds nothing in these would find nothing at all.

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Acknowledges a step it did not keep.
    LosesSteps,
    /// Leaves a step out when the history is read.
    HidesSteps,
    /// Alters a step when the history is read.
    AltersSteps,
    /// Forgets what finished tasks wrote.
    ForgetsPending,
    /// Forgets the journal when a thread is taken over.
    ForgetsEffects,
    /// Forgets what models answered.
    ForgetsAnswers,
    /// Takes an action without an outcome for one that is done.
    AssumesOutcomes,
    /// Gives another outcome back than was recorded.
    AltersOutcomes,
    /// Forgets what was drawn.
    Redraws,
    /// Accepts every answer to a question.
    AnswersTwice,
    /// Lets every token pass.
    IgnoresFences,
    /// Gives no thread back.
    RefusesClaims,
    /// Keeps the empty state as a snapshot.
    SpoilsSnapshots,
    /// Gives a fork another history.
    SpoilsForks,
    /// Loses the journal of past steps.
    ForgetsPastEffects,
    /// Fails where no fault explains it.
    FailsAtRandom,
    /// A node that asks for something else whenever it runs again.
    ChangesRequests,
}
