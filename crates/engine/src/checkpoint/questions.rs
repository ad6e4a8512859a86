//! Which recorded questions still wait for an answer.

use super::{OpenInterrupt, Result, StepRow, Steps, Store, ThreadInfo, Threads};
use crate::ids::ThreadId;

/// Refuses a thread of which the newest of its steps that could be read is not its head.
///
/// The thread was shortened to its last step, which is no error, or it is damaged: reading the state shows which.
///
/// # Errors
/// As [`Steps::load`].
pub async fn check_newest(
    store: &dyn Steps,
    info: &ThreadInfo,
    newest: Option<&StepRow>,
) -> Result<()> {
    if newest.is_none_or(|newest| newest.seq < info.head) {
        store.load(info.id, None).await?;
    }
    Ok(())
}

/// Returns the questions that wait for a person, of a thread and of its subgraphs, oldest first.
///
/// A question is open while its step is the next one to finish, up to the top. A question of a step that an edit
/// abandoned is left out, although its row stays in the journal.
///
/// # Errors
/// Whatever the store reports.
pub async fn awaited_interrupts(store: &dyn Store, thread: ThreadId) -> Result<Vec<OpenInterrupt>> {
    let mut awaited = Vec::new();
    for question in store.open_interrupts(thread).await? {
        if is_awaited(store, &question).await? {
            awaited.push(question);
        }
    }
    Ok(awaited)
}

async fn is_awaited(store: &dyn Threads, question: &OpenInterrupt) -> Result<bool> {
    let asking = store.info(question.thread).await?;
    if question.step != asking.head + 1 {
        return Ok(false);
    }
    let Some(root) = asking.root else { return Ok(true) };
    let mut above = store.info(root).await?;
    let mut namespace = String::new();
    for place in asking.namespace.split('|') {
        let step = place.rsplit(':').nth(1).and_then(|step| step.parse::<u64>().ok());
        if step != Some(above.head + 1) {
            return Ok(false);
        }
        if !namespace.is_empty() {
            namespace.push('|');
        }
        namespace.push_str(place);
        above = store.info(above.id.child(&namespace)).await?;
    }
    Ok(true)
}
