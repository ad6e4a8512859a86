//! What a run of the service asks of the database, counted before a real Postgres.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::proxy::{Piece, Way};
use super::saying;
use super::served::Served;

/// Statements of a run that a client waits for, at most: its rows, a claim, two decisions of a model, four steps, the
/// events, the end, and the answer. What the process polls beside it is not a part of it.
const MOST: usize = 36;

/// X1: as many for the twentieth turn of a thread as for the second.
#[tokio::test]
async fn a_run_needs_as_few_statements_on_an_old_thread_as_on_a_young_one() {
    let statements = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&statements);
    let served = Served::behind(move |piece: Piece| {
        seen.fetch_add(usize::from(piece.way == Way::Statement), Ordering::SeqCst);
        false
    });
    let served = served.await;
    let thread = served.thread().await;
    let mut of_turns = Vec::new();
    for _ in 0..20 {
        let before = statements.load(Ordering::SeqCst);
        let asked = served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
        assert_eq!(asked.0, 200, "{}", asked.1);
        of_turns.push(statements.load(Ordering::SeqCst) - before);
    }
    // The process polls for other work beside most of them.
    let least = |turns: &[usize]| turns.iter().copied().min().unwrap();
    let young = least(&of_turns[1..8]);
    let old = least(&of_turns[12..]);
    assert!(young <= MOST && old <= MOST, "young {young}, old {old}: {of_turns:?}");
}
