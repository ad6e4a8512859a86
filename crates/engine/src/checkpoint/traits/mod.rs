//! What a store is made of: a few traits with one purpose each, and what a crash leaves of each.
//!
//! Enter at the trait for what is wanted; [`Store`](super::Store) is all of them. Invariant: a writing method is one atomic
//! write, and one that takes a `fence` changes nothing under a token that is not the thread's newest. Deliberately
//! absent: any statement; each store writes its own, or those that both databases share.

mod effects;
mod events;
mod leases;
mod questions;
mod steps;
mod threads;
mod transfer;

pub use self::{
    effects::Effects, events::Events, leases::Leases, questions::Questions, steps::Steps,
    threads::Threads, transfer::Transfer,
};
