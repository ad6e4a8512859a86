//! One seed from beginning to end: a story with faults, the same without, and what the invariants say.

use std::sync::Arc;

use super::epilogue::{self, Depth};
use super::flaw::Flaw;
use super::invariants;
use super::plan::Plan;
use super::play::Stage;
use super::record::Record;
use super::rng::Rng;

/// A broken invariant, and how it shows.
#[derive(Clone, Debug)]
pub struct Violation {
    pub invariant: &'static str,
    pub reason: String,
}

/// How one seed went.
pub struct Report {
    pub violations: Vec<Violation>,
    pub record: Record,
}

/// Plays a seed; with `tells`, its story goes to standard error.
pub async fn play(seed: u64, flaw: Option<Flaw>, tells: bool) -> Report {
    let mut rng = Rng::new(seed);
    let plan = Arc::new(Plan::draw(&mut rng));
    // A flaw is looked for with everything there is.
    let mut deep = |percent| flaw.is_some() || rng.chance(percent);
    let depth = Depth { states: deep(20), replay: deep(20), fork: deep(10) };
    let mut stage = Stage::new(&plan, rng, flaw, tells).await;
    let end = stage.play().await;
    if plan.is_honest {
        let mut calm = Stage::new(&plan, Rng::new(seed), None, false).await;
        let end = calm.play_calmly().await;
        let reference = epilogue::reference(&calm, end).await;
        stage.sim.board().record.reference = Some(reference);
    }
    stage.sim.board().record.end = end;
    epilogue::read(&mut stage, depth).await;
    let record = std::mem::take(&mut stage.sim.board().record);
    Report { violations: invariants::check(&record), record }
}
