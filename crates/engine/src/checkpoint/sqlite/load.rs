//! Reading what is needed to restore a thread.

use perihelion_database::{Database, Transaction, query};

use super::super::{
    Error, Loaded,
    both::{
        decode::ThreadRow,
        read,
        steps::{newest_snapshot, pending, steps},
    },
    chain::{not_beyond, reached},
    limits::big,
};
use crate::ids::ThreadId;

const BEYOND: &str = "SELECT min(seq) AS seq FROM step WHERE thread_id = $1 AND seq > $2";

/// Reads in one transaction, so that all parts are of the same moment.
pub(super) async fn load(
    database: &Database,
    thread: ThreadId,
    at: Option<u64>,
    since: Option<u64>,
) -> Result<Loaded, Error> {
    let mut transaction = database.begin_reading().await?;
    let loaded = read_all(&mut transaction, thread, at, since).await;
    transaction.settle(loaded).await
}

async fn read_all(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
    at: Option<u64>,
    since: Option<u64>,
) -> Result<Loaded, Error> {
    let ThreadRow { info, base } = read(transaction, thread).await?;
    let at = at.unwrap_or(info.head);
    if at > info.head || at < base {
        return Err(Error::UnknownStep { thread, seq: at, head: info.head });
    }
    let beyond = query(BEYOND).bind(thread.0).bind(big(info.head));
    if let Some(beyond) = transaction.fetch_optional(&beyond).await? {
        not_beyond(thread, beyond.get("seq")?)?;
    }
    let snapshot = match since {
        None => newest_snapshot(transaction, thread, at).await?,
        Some(_) => None,
    };
    let after = since.map(|since| since.saturating_sub(1));
    let after = after.or(snapshot.as_ref().map(|snapshot| snapshot.seq)).unwrap_or_default();
    let steps = steps(transaction, thread, after, at).await?;
    reached(thread, after, &steps, at)?;
    let pending = if at == info.head {
        pending(transaction, thread, info.head + 1).await?
    } else {
        Vec::new()
    };
    Ok(Loaded { info, snapshot, steps, pending })
}
