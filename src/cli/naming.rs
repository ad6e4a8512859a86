//! How threads are named on the command line: by id or name, by a part of an id, or not at all.

use std::sync::Arc;

use super::Error;
use crate::checkpoint::{self, Store, ThreadFilter, ThreadInfo};
use crate::config::Settings;
use crate::ids::ThreadId;
use crate::runtime::open_store_to_read;

/// Letters of an id that are shown where it stands in a row; they are its last, which are drawn by chance.
const SHORT: usize = 8;

/// Letters of an id that say enough to look for it.
const FEWEST: usize = 4;

/// Returns the short form of an id, which is accepted in its place.
pub(super) fn short(id: ThreadId) -> String {
    let whole = id.to_string();
    whole.get(whole.len() - SHORT..).unwrap_or(&whole).to_owned()
}

/// Returns the short forms of ids, whole where two would be alike.
pub(super) fn shorts(ids: &[ThreadId]) -> Vec<String> {
    let short_of =
        |id: &ThreadId| match ids.iter().filter(|other| short(**other) == short(*id)).count() {
            0 | 1 => short(*id),
            _ => id.to_string(),
        };
    ids.iter().map(short_of).collect()
}

/// Finds the thread that is meant: by its id or name, by the beginning or the end of its id; the newest without a name.
///
/// A name that fits none is one that is unknown, which anyone who uses it says.
///
/// # Errors
/// [`Error::NoThread`] where there is none to take; [`Error::ManyThreads`] where several ids begin or end so.
pub(super) async fn find(store: &dyn Store, name: Option<&str>) -> Result<ThreadId, Error> {
    let Some(name) = name else {
        let filter = ThreadFilter { limit: Some(1), ..ThreadFilter::default() };
        return store.list(&filter).await?.first().map(|info| info.id).ok_or(Error::NoThread);
    };
    let (id, named) = ThreadId::from_name(name);
    if named.is_none() || !is_part(name) {
        return Ok(id);
    }
    match store.info(id).await {
        Err(checkpoint::Error::UnknownThread(_)) => {}
        other => return Ok(other?.id),
    }
    let part = name.to_lowercase();
    let fits = |info: &ThreadInfo| {
        let whole = info.id.to_string();
        whole.starts_with(&part) || whole.ends_with(&part)
    };
    let mut all = store.list(&ThreadFilter::default()).await?;
    all.retain(fits);
    match all.as_slice() {
        [] => Ok(id),
        [one] => Ok(one.id),
        several => {
            let ids: Vec<String> = several.iter().take(5).map(|info| info.id.to_string()).collect();
            Err(Error::ManyThreads { name: name.to_owned(), ids: ids.join(", ") })
        }
    }
}

/// As [`find`], in the database of the settings, which is opened only where the name alone does not say it.
///
/// # Errors
/// As [`find`].
pub(super) async fn find_in(settings: &Settings, name: Option<&str>) -> Result<ThreadId, Error> {
    if let Some(name) = name
        && !is_part(name)
    {
        return Ok(ThreadId::from_name(name).0);
    }
    let store: Arc<dyn Store> = open_store_to_read(settings).await?;
    let found = find(store.as_ref(), name).await;
    store.close().await;
    found
}

/// Tells whether a name may be a part of an id.
fn is_part(name: &str) -> bool {
    (FEWEST..36).contains(&name.len()) && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Says who works on a thread, as far as the name of a holder says it.
pub(super) fn holder(owner: &str) -> String {
    let parts: Vec<&str> = owner.split('/').collect();
    match parts.as_slice() {
        [host, _, pid, ..] if !host.is_empty() => format!("process {pid} on {host}"),
        _ => owner.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{MemoryStore, NewThread, Threads as _};

    async fn with(ids: &[ThreadId]) -> MemoryStore {
        let store = MemoryStore::new();
        for id in ids {
            let new = NewThread {
                id: *id,
                graph: "g".into(),
                title: None,
                root: None,
                namespace: String::new(),
                tenant: "default".into(),
            };
            store.create(new).await.unwrap();
        }
        store
    }

    #[tokio::test]
    async fn a_thread_is_found_by_a_part_of_its_id_and_the_newest_without_a_name() {
        let ids = ["0197aaaa-0000-7000-8000-00001111aaaa", "0197aaab-0000-7000-8000-00002222aaaa"];
        let ids = ids.map(|id| ThreadId::from_name(id).0);
        let store = with(&ids).await;
        for part in ["0197aaaa", "1111aaaa", "00001111AAAA"] {
            assert_eq!(find(&store, Some(part)).await.unwrap(), ids[0], "{part}");
        }
        assert_eq!(find(&store, None).await.unwrap(), ids[1]);
        let several = find(&store, Some("aaaa")).await.unwrap_err().to_string();
        assert!(several.contains("0197aaaa-0000") && several.contains("2222aaaa"), "{several}");
        let unknown = find(&store, Some("beef")).await.unwrap();
        assert_eq!(
            unknown,
            ThreadId::from_name("beef").0,
            "it may be a name that is not there yet"
        );
        assert!(matches!(find(&with(&[]).await, None).await, Err(Error::NoThread)));
        assert_eq!(shorts(&ids), ["1111aaaa", "2222aaaa"]);
    }

    #[test]
    fn a_holder_is_named_by_process_and_host() {
        assert_eq!(holder("desk/boot+pid:[1]/8211/77"), "process 8211 on desk");
        assert_eq!(holder("somebody"), "somebody");
    }
}
