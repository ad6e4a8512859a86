//! Judges traces: every run's spans reached the collector, no matter who died between the run and its trace.

use std::collections::HashMap;
use std::path::Path;

use perihelion::checkpoint::{EffectKind, EffectStatus, Error, StepKind, Store};
use perihelion::clock;
use perihelion::ids::ThreadId;

use super::collector::{Received, Seen};
use super::hand::{self, Setup};
use super::oracle::Findings;

/// Processes that may try to deliver what the others left.
const ATTEMPTS: u32 = 60;

/// The number of a process that takes no thread.
const NOBODY: u64 = u64::MAX;

/// Lets undisturbed processes, one after another, deliver what is still pending; each is a start and an end.
pub async fn deliver_the_rest(store: &dyn Store, directory: &Path, setup: &Setup) {
    for _ in 0..ATTEMPTS {
        if pending(store).await == 0 {
            return;
        }
        hand::open(directory, NOBODY, setup).await.unwrap().close().await;
        clock::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Returns how many threads have a pending trace.
async fn pending(store: &dyn Store) -> usize {
    let outbox = store.outbox().expect("every durable store has one");
    outbox.pending(None, u32::MAX).await.unwrap().len()
}

/// Judges the traces of a thread by its raw rows: what a run recorded, a span tells.
///
/// Nothing of the program's own drawing of traces is asked: an effect or a step that it overlooks is missed here.
///
/// # Errors
/// When the thread cannot be read.
pub async fn judge(
    store: &dyn Store,
    thread: ThreadId,
    received: &Received,
    findings: &mut Findings,
) -> Result<(), Error> {
    let place = format!("{thread}:");
    let spans: Vec<&Seen> =
        received.values().filter(|seen| seen.checkpoint.starts_with(&place)).collect();
    findings.spans += spans.len() as u64;
    let effects = store.effects(thread, None).await?;
    let done = effects.iter().filter(|row| row.status == EffectStatus::Done);
    let mut chats: HashMap<u64, usize> = HashMap::new();
    for row in done {
        let key = hex(&row.key);
        let is_reported = match row.kind {
            EffectKind::Model => {
                *chats.entry(row.step).or_default() += 1;
                true
            }
            EffectKind::Tool => spans.iter().any(|span| span.key.as_ref() == Some(&key)),
            EffectKind::Interrupt => {
                let id = uuid::Uuid::from_slice(&row.key).unwrap_or_default().to_string();
                spans.iter().any(|span| span.interrupt.as_ref() == Some(&id))
            }
            _ => true,
        };
        if !is_reported {
            let what = format!("{thread} step {}: no span tells of {} {key}", row.step, row.name);
            findings.violate("trace", what);
        }
    }
    for (step, answers) in chats {
        let at = format!("{thread}:{step}");
        let count_in_trace =
            spans.iter().filter(|span| span.checkpoint == at && is_of_model(span)).count();
        if count_in_trace < answers {
            let what = format!(
                "{at}: spans tell of {count_in_trace} answers of the model, {answers} were"
            );
            findings.violate("trace", what);
        }
    }
    for step in store.history(thread, None, u32::MAX).await? {
        let at = format!("{thread}:{}", step.seq);
        if step.kind == StepKind::Loop && !spans.iter().any(|span| span.checkpoint == at) {
            findings.violate("trace", format!("{at}: no span tells of the step"));
        }
    }
    if !spans.iter().any(|span| span.name.starts_with("invoke_workflow")) {
        findings.violate("trace", format!("{thread}: no trace has a root"));
    }
    Ok(())
}

fn is_of_model(span: &Seen) -> bool {
    span.name == "chat" || span.name.starts_with("chat ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
        pending => {
            findings.violate("trace", format!("{pending} threads still have traces pending"))
        }
    }
}
