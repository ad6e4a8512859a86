//! Analysis of SQL without a database: the permissions of a statement, its reads, its joins.
//!
//! Enter at [`guard::guard`]. Invariant: no I/O, no clock; any text gets an answer, never a panic.
//! Deliberately absent: connections, models, prompts.

mod catalogue;
pub mod chart;
mod clauses;
mod dialect;
pub mod fanout;
pub mod guard;
pub mod joins;
mod knowledge;
pub mod limit;
pub mod linking;
mod literals;
pub mod numbers;

/// Bytes of the large stack; only the used part becomes memory.
const SIZE: usize = 128 << 20;

/// Does work on a large stack: chains of operators and UNIONs make the trees of statements as deep as they are long. The trees are dropped there too, so `work` must not return them.
pub(crate) fn on_large_stack<T: Send>(work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(SIZE).spawn_scoped(scope, &work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // There are no more threads; most statements need no large stack.
            Err(_) => work(),
        }
    })
}

#[cfg(test)]
mod sample;
mod syntax;

pub use catalogue::{Catalogue, Column, ForeignKey, Table, kind_of};
pub use dialect::Dialect;
pub use knowledge::{Fitting, Freshness, Knowledge, Metric, VerifiedQuery};
pub use perihelion_settings::config::strict::suggestion;
