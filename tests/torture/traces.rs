//! Judges traces: every run's spans reached the collector, no matter who died between the run and its trace.

use std::collections::HashSet;
use std::path::Path;

use perihelion::checkpoint::Store;
use perihelion::clock;
use perihelion::ids::ThreadId;
use perihelion::telemetry::{Error, View, Which, project, read};

use super::collector::Id;
use super::hand::{self, Setup};
use super::oracle::Findings;

/// Processes that may try to deliver what the others left.
const ATTEMPTS: u32 = 60;

/// Lets undisturbed processes, one after another, deliver what is still pending; each is a start and an end.
pub async fn deliver_the_rest(store: &dyn Store, directory: &Path, setup: &Setup) {
    for _ in 0..ATTEMPTS {
        if pending(store).await == 0 {
            return;
        }
        hand::open(directory, setup).await.unwrap().close().await;
        clock::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Returns how many threads owe a trace.
async fn pending(store: &dyn Store) -> usize {
    let outbox = store.outbox().expect("every durable store has one");
    outbox.pending(u32::MAX).await.unwrap().len()
}

/// Judges the traces of a thread.
///
/// # Errors
/// When the thread cannot be read.
pub async fn judge(
    store: &dyn Store,
    thread: ThreadId,
    received: &HashSet<Id>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut known = HashSet::new();
    for run in store.runs(thread).await? {
        let spans = match read(store, thread, Which::Number(run.number)).await {
            Ok((rows, number)) => project(&rows, number, View::default())?,
            // There was nothing to do.
            Err(Error::Truncated { .. }) => continue,
            Err(error) => return Err(error),
        };
        // What a crash left open has no final id.
        for span in spans.iter().filter(|span| !span.open) {
            let id = (span.trace_id.to_bytes(), span.span_id.to_bytes());
            if known.insert(id) && !received.contains(&id) {
                let (name, run) = (&span.name, run.number);
                let what = format!("thread {thread} run {run}: the span {name:?} never arrived");
                findings.violate("trace", what);
            }
        }
    }
    findings.spans += known.len() as u64;
    Ok(())
}

/// Returns whether the clocks that dated a thread's runs, steps and effects agree.
///
/// # Errors
/// When the thread cannot be read.
pub async fn is_dated(store: &dyn Store, thread: ThreadId) -> Result<bool, Error> {
    let mut times: Vec<_> = store.runs(thread).await?.iter().map(|run| run.started_at).collect();
    times.extend(store.history(thread, None, u32::MAX).await?.iter().map(|step| step.at));
    for effect in store.effects(thread, None).await? {
        times.push(effect.started_at);
        times.extend(effect.ended_at);
    }
    let span = times.iter().max().zip(times.iter().min()).map(|(last, first)| *last - *first);
    Ok(span.is_none_or(|span| span.num_minutes() < 30))
}

/// Judges that nothing is pending any more.
pub async fn settled(store: &dyn Store, findings: &mut Findings) {
    match pending(store).await {
        0 => {}
        pending => findings.violate("trace", format!("{pending} threads still owe a trace")),
    }
}
