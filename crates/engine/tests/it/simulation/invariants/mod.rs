//! What must hold whatever happens, one promise per file.
//!
//! Enter at [`check`]. Each reads the [`Record`] of a seed and nothing else, and each has a
//! [`Flaw`](super::flaw::Flaw) that breaks it, so that it is known to be able to fail.

mod acknowledged_steps_stay;
mod actions_are_sent_once;
mod answers_are_bought_once;
mod draws_are_kept;
mod finished_tasks_rest;
mod forks_share_history;
mod hash_chain_is_whole;
mod no_surprises;
mod one_key_per_action;
mod order_does_not_matter;
mod questions_are_answered_once;
mod replay_commits_the_same;
mod snapshots_change_nothing;
mod stale_fences_write_nothing;
mod steps_have_no_gap;
mod threads_end_or_wait;
mod unknown_outcomes_surface;

use super::flaw::Flaw;
use super::record::Record;
use super::seed::Violation;

/// One promise: its name, its check, and a flaw that breaks it.
pub struct Invariant {
    pub name: &'static str,
    check: fn(&Record) -> Result<(), String>,
    pub broken_by: Flaw,
}

macro_rules! invariants {
    ($($name:ident broken by $flaw:ident),+ $(,)?) => {
        pub const ALL: &[Invariant] = &[$(Invariant {
            name: stringify!($name),
            check: $name::check,
            broken_by: Flaw::$flaw,
        }),+];
    };
}

invariants! {
    acknowledged_steps_stay broken by LosesSteps,
    actions_are_sent_once broken by ForgetsEffects,
    answers_are_bought_once broken by ForgetsAnswers,
    draws_are_kept broken by Redraws,
    finished_tasks_rest broken by ForgetsPending,
    forks_share_history broken by SpoilsForks,
    hash_chain_is_whole broken by AltersSteps,
    no_surprises broken by FailsAtRandom,
    one_key_per_action broken by ChangesRequests,
    order_does_not_matter broken by AltersOutcomes,
    questions_are_answered_once broken by AnswersTwice,
    replay_commits_the_same broken by ForgetsPastEffects,
    snapshots_change_nothing broken by SpoilsSnapshots,
    stale_fences_write_nothing broken by IgnoresFences,
    steps_have_no_gap broken by HidesSteps,
    threads_end_or_wait broken by RefusesClaims,
    unknown_outcomes_surface broken by AssumesOutcomes,
}

/// Returns everything that is wrong with a record.
pub fn check(record: &Record) -> Vec<Violation> {
    let verdicts = ALL.iter().filter_map(|one| {
        let reason = (one.check)(record).err()?;
        Some(Violation { invariant: one.name, reason })
    });
    verdicts.collect()
}
