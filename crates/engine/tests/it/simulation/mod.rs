//! The real runner, engine, journal and memory store under a seeded scheduler that crashes processes.
//!
//! Enter at [`seed::play`]: a seed draws a graph with its nodes ([`plan`]), then plays it ([`play`]) with up to
//! three processes at a time that share one thread. Each is a call of the real [`perihelion_engine::runner::Runner`],
//! polled by hand, on a [`watched::Watched`] view of one [`perihelion_engine::checkpoint::MemoryStore`]: every write
//! waits twice and every effect waits twice, and the scheduler draws who continues, who is killed, whose
//! connection breaks before or after a write took hold, who takes the thread over from a process that still
//! lives, and when a person answers. Then the weather calms down and the thread is resumed until it is
//! through. Invariant of the simulation itself: a seed always plays the same story. Deliberately absent: wall
//! clock, timers, real I/O, and snapshots written by the runner beside its steps (a thread pool writes them;
//! here the scheduler does).
//!
//! `make simulate` plays a million of them; `make test` a few hundred and the kept ones (`cases.rs`, which the
//! tests mount beside this module: the program behind `make simulate` has no use for it).

pub mod epilogue;
pub mod flaw;
pub mod invariants;
pub mod plan;
pub mod play;
pub mod process;
pub mod record;
pub mod rng;
pub mod seed;
pub mod sim;
pub mod tale;
pub mod watched;
