//! The scheduler's board: what waits, who may continue, and what was seen.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::flaw::Flaw;
use super::plan::Plan;
use super::record::Record;
use super::rng::Rng;

/// What the scheduler says to one that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Go,
    /// The database is not reached: nothing happens, and an error says so.
    Refuse,
    /// It happens, and the reply is lost.
    Lose,
    /// Its process is gone; nobody hears what it does.
    Dead,
}

/// Somebody who waits.
pub struct Slot {
    pub id: u64,
    pub process: usize,
    pub label: &'static str,
    verdict: Option<Verdict>,
    waker: Waker,
}

/// What is known of a process, dead or alive.
#[derive(Clone, Copy, Default)]
pub struct Life {
    pub is_dead: bool,
    /// When it took the thread.
    pub claimed_at: Option<u64>,
    /// It is not held up before it has taken the thread.
    pub is_quick: bool,
}

pub struct Board {
    pub rng: Rng,
    pub slots: Vec<Slot>,
    next_slot: u64,
    order: u64,
    /// No more faults, no more waiting.
    pub is_calm: bool,
    pub lives: Vec<Life>,
    pub is_guest_there: bool,
    pub trips: std::collections::HashMap<(u64, u32, usize), u32>,
    /// Keys whose reply was lost once already.
    pub lost_replies: std::collections::HashSet<String>,
    pub record: Record,
}

pub struct Sim {
    board: Mutex<Board>,
    pub plan: Arc<Plan>,
    pub flaw: Option<Flaw>,
    tells: bool,
}

impl Sim {
    pub fn new(plan: &Arc<Plan>, rng: Rng, flaw: Option<Flaw>, tells: bool) -> Self {
        let record = Record { plan: Some(Plan::clone(plan)), ..Record::default() };
        let board = Board {
            rng,
            slots: Vec::new(),
            next_slot: 0,
            order: 0,
            is_calm: false,
            // The first is everybody who is no process of ours: readers, people, housekeeping.
            lives: vec![Life { is_quick: true, ..Life::default() }],
            is_guest_there: true,
            trips: Default::default(),
            lost_replies: Default::default(),
            record,
        };
        Self { board: Mutex::new(board), plan: Arc::clone(plan), flaw, tells }
    }

    pub fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a record of its own for another thread, and returns the one before.
    pub fn begin_record(&self) -> Record {
        let fresh = Record { plan: Some(Plan::clone(&self.plan)), ..Record::default() };
        std::mem::replace(&mut self.board().record, fresh)
    }

    /// Continues with an earlier record; what was wrong in the one between stays wrong.
    pub fn continue_with_record(&self, earlier: Record) {
        let mut board = self.board();
        let between = std::mem::replace(&mut board.record, earlier);
        board.record.surprises.extend(between.surprises);
        board.record.stale.extend(between.stale);
    }

    pub fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Says what happens, when one seed is looked at.
    #[expect(clippy::print_stderr, reason = "a replayed seed tells its story")]
    pub fn tell(&self, what: impl FnOnce() -> String) {
        if self.tells {
            eprintln!("{}", what());
        }
    }

    /// Waits until the scheduler lets it continue.
    pub fn gate(&self, process: usize, label: &'static str) -> Gate<'_> {
        Gate { sim: self, process, label, slot: None }
    }
}

impl Board {
    pub fn tick(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Notes that a process took the thread.
    pub fn take(&mut self, process: usize) {
        self.lives[process].claimed_at = Some(self.tick());
    }

    pub fn count(&mut self, fault: &'static str) {
        *self.record.faults.entry(fault).or_default() += 1;
    }

    /// Lets one continue.
    pub fn grant(&mut self, id: u64, verdict: Verdict) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) {
            slot.verdict = Some(verdict);
            slot.waker.wake_by_ref();
        }
    }

    /// Returns those who wait and were not let go yet.
    pub fn waiting(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.verdict.is_none())
    }

    /// Ends the weather: everybody continues at once.
    pub fn calm_down(&mut self) {
        self.is_calm = true;
        self.is_guest_there = true;
        let waiting: Vec<u64> = self.waiting().map(|slot| slot.id).collect();
        waiting.into_iter().for_each(|id| self.grant(id, Verdict::Go));
    }

    fn is_delayed(&mut self, process: usize) -> bool {
        let life = self.lives[process];
        let is_quick = life.is_quick && life.claimed_at.is_none();
        if self.is_calm || is_quick {
            return false;
        }
        let percent = self.record.plan.as_ref().map_or(0, |plan| plan.gates);
        self.rng.chance(percent)
    }
}

/// A place where the scheduler may hold somebody up.
pub struct Gate<'a> {
    sim: &'a Sim,
    process: usize,
    label: &'static str,
    slot: Option<u64>,
}

impl Future for Gate<'_> {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Verdict> {
        let mut board = self.sim.board();
        if board.lives[self.process].is_dead {
            return Poll::Ready(Verdict::Dead);
        }
        let Some(id) = self.slot else {
            if !board.is_delayed(self.process) {
                return Poll::Ready(Verdict::Go);
            }
            board.next_slot += 1;
            let id = board.next_slot;
            let process = self.process;
            let label = self.label;
            let waker = context.waker().clone();
            board.slots.push(Slot { id, process, label, verdict: None, waker });
            drop(board);
            self.slot = Some(id);
            return Poll::Pending;
        };
        let Some(at) = board.slots.iter().position(|slot| slot.id == id) else {
            return Poll::Ready(Verdict::Dead);
        };
        match board.slots[at].verdict {
            Some(verdict) => {
                board.slots.swap_remove(at);
                drop(board);
                self.slot = None;
                Poll::Ready(verdict)
            }
            None => {
                board.slots[at].waker.clone_from(context.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.slot {
            self.sim.board().slots.retain(|slot| slot.id != id);
        }
    }
}
