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

/// Statements that the stream of an old thread takes more than that of a young one, at most.
const MORE: usize = 8;

/// X1: runs that the client has are not read one by one.
#[tokio::test]
async fn the_stream_of_an_old_thread_is_opened_with_as_few_statements_as_that_of_a_young_one() {
    let statements = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&statements);
    let served = Served::behind(move |piece: Piece| {
        seen.fetch_add(usize::from(piece.way == Way::Statement), Ordering::SeqCst);
        false
    });
    let served = served.await;
    let thread = served.thread().await;
    let stream = format!("/threads/{thread}/stream");
    let mut of_runs = Vec::new();
    let mut last = "-1".to_owned();
    for _ in 0..24 {
        let before = statements.load(Ordering::SeqCst);
        let asked = served.http.get(format!("{}{stream}", served.url));
        let mut open = asked.header("last-event-id", &last).send().await.unwrap();
        let runs = format!("/threads/{thread}/runs");
        served.post(&runs, &saying("hello")).await;
        let mut text = String::new();
        // A client that comes back hears the next run, and nothing of those before.
        while !(text.contains("run_done") && text.ends_with("\n\n")) {
            let piece = open.chunk().await.unwrap().unwrap();
            text.push_str(&String::from_utf8_lossy(&piece));
        }
        assert_eq!(text.matches("\"attempt\"").count(), 1, "{text}");
        let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
        last = ids.last().unwrap().to_owned();
        of_runs.push(statements.load(Ordering::SeqCst) - before);
    }
    let least = |runs: &[usize]| runs.iter().copied().min().unwrap();
    let young = least(&of_runs[1..8]);
    let old = least(&of_runs[16..]);
    assert!(old < young + MORE, "young {young}, old {old}: {of_runs:?}");
}
