//! Which thread a name means: an id or a name, a part of an id, or the newest without one.

use std::collections::HashMap;
use std::fmt;

use super::Threads;
use crate::{Error, LOCAL_TENANT};
use perihelion_engine::checkpoint::{self, ThreadFilter, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::Settings;

/// Letters of a shortened ID; they are its last ones, which are random.
const SHORT: usize = 8;

/// Letters of an id that say enough to look for it.
const FEWEST: usize = 4;

/// Number of listed IDs if several match.
const NAMED: usize = 5;

impl Threads {
    /// Returns the short form of an id, which is accepted in its place.
    pub fn short(id: ThreadId) -> String {
        let whole = id.to_string();
        whole.get(whole.len() - SHORT..).unwrap_or(&whole).to_owned()
    }

    /// Returns the short forms of ids, whole where two would be alike.
    pub fn shorts(ids: &[ThreadId]) -> Vec<String> {
        let shorts: Vec<String> = ids.iter().map(|id| Self::short(*id)).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for short in &shorts {
            *counts.entry(short).or_default() += 1;
        }
        let is_alike = |short: &String| counts[short.as_str()] > 1;
        let named = |(id, short): (&ThreadId, &String)| {
            if is_alike(short) { id.to_string() } else { short.clone() }
        };
        ids.iter().zip(&shorts).map(named).collect()
    }

    /// Finds the thread that is meant: by its id or name, by the beginning or the end of its id; the newest without a name.
    ///
    /// A name without a match is an unknown one, which the caller reports.
    ///
    /// # Errors
    /// [`Error::NoThread`] if there is no thread; [`Error::ManyThreads`] if several IDs begin or end with the name.
    pub async fn find(&self, name: Option<&str>) -> Result<ThreadId, Error> {
        match name {
            Some(name) => self.find_named(name).await,
            None => {
                let filter = ThreadFilter { limit: Some(1), ..ThreadFilter::default() };
                let newest = self.0.list(&filter).await?;
                newest.first().map(|info| info.id).ok_or(Error::NoThread)
            }
        }
    }

    async fn find_named(&self, name: &str) -> Result<ThreadId, Error> {
        let (id, named) = ThreadId::from_name(name);
        if named.is_none() || !is_part(name) {
            return Ok(id);
        }
        let part = name.to_lowercase();
        let fits = |info: &ThreadInfo| {
            let whole = info.id.to_string();
            whole.starts_with(&part) || whole.ends_with(&part)
        };
        self.named_or_part(id, name, fits).await
    }

    /// Finds the thread of a name, otherwise the one thread that the name fits as a part of its ID.
    async fn named_or_part(
        &self,
        id: ThreadId,
        name: &str,
        fits: impl Fn(&ThreadInfo) -> bool,
    ) -> Result<ThreadId, Error> {
        match self.0.info(id).await {
            Err(checkpoint::Error::UnknownThread(_)) => {}
            other => return Ok(other?.id),
        }
        let mut all = self.0.list(&ThreadFilter::default()).await?;
        all.retain(fits);
        match all.as_slice() {
            [] => Ok(id),
            [one] => Ok(one.id),
            several => {
                let ids = several.iter().take(NAMED).map(|info| info.id.to_string());
                let ids = ids.collect::<Vec<_>>().join(", ");
                Err(Error::ManyThreads { name: name.to_owned(), ids })
            }
        }
    }

    /// Returns the ID of the named thread for a tenant's question, with its title if it is new.
    ///
    /// The short form of an ID means that thread of the tenant. Any other part of an ID is a name like others, because a
    /// question makes the thread that it names.
    ///
    /// # Errors
    /// [`Error::ManyThreads`] if several IDs have this short form, and [`Error::Store`]. A missing database is no error.
    pub async fn to_ask(
        settings: &Settings,
        tenant: &str,
        name: &str,
    ) -> Result<(ThreadId, Option<String>), Error> {
        let (id, title) = if tenant == LOCAL_TENANT {
            ThreadId::from_name(name)
        } else {
            ThreadId::from_name_of(tenant, name)
        };
        let title = title.map(str::to_owned);
        if title.is_none() || name.len() != SHORT || !is_part(name) {
            return Ok((id, title));
        }
        let threads = match Self::open_to_read(settings).await {
            Err(Error::Store(checkpoint::Error::NoDatabase { .. })) => return Ok((id, title)),
            opened => opened?,
        };
        let short = name.to_lowercase();
        let fits = |info: &ThreadInfo| info.tenant == tenant && Self::short(info.id) == short;
        let found = threads.named_or_part(id, name, fits).await;
        threads.close().await;
        let found = found?;
        Ok((found, title.filter(|_| found == id)))
    }
}

fn is_part(name: &str) -> bool {
    (FEWEST..36).contains(&name.len()) && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// The process that works on a thread, by the holder's name of the lease; its text contains the known parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder(String);

impl Holder {
    pub fn of(owner: &str) -> Self {
        Self(owner.to_owned())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> = self.0.split('/').collect();
        match parts.as_slice() {
            [host, _, pid, ..] if !host.is_empty() => write!(f, "process {pid} on {host}"),
            _ => f.write_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::*;

    #[tokio::test]
    async fn a_thread_is_found_by_a_part_of_its_id_and_the_newest_without_a_name() {
        let ids = ["0197aaaa-0000-7000-8000-00001111aaaa", "0197aaab-0000-7000-8000-00002222aaaa"];
        let ids = ids.map(|id| ThreadId::from_name(id).0);
        let threads = with(&ids).await;
        for part in ["0197aaaa", "1111aaaa", "00001111AAAA"] {
            assert_eq!(threads.find(Some(part)).await.unwrap(), ids[0], "{part}");
        }
        assert_eq!(threads.find(None).await.unwrap(), ids[1]);
        let several = threads.find(Some("aaaa")).await.unwrap_err().to_string();
        assert!(several.contains("0197aaaa-0000") && several.contains("2222aaaa"), "{several}");
        let unknown = threads.find(Some("beef")).await.unwrap();
        assert_eq!(
            unknown,
            ThreadId::from_name("beef").0,
            "it may be a name that is not there yet"
        );
        assert!(matches!(with(&[]).await.find(None).await, Err(Error::NoThread)));
        assert_eq!(Threads::shorts(&ids), ["1111aaaa", "2222aaaa"]);
        let alike = ThreadId::from_name("0197aaac-0000-7000-8000-33331111aaaa").0;
        let all = [ids[0], ids[1], alike];
        let whole = [ids[0].to_string(), "2222aaaa".to_owned(), alike.to_string()];
        assert_eq!(Threads::shorts(&all), whole);
    }

    #[test]
    fn a_holder_is_named_by_process_and_host() {
        assert_eq!(Holder::of("desk/boot+pid:[1]/8211/77").to_string(), "process 8211 on desk");
        assert_eq!(Holder::of("somebody").to_string(), "somebody");
    }
}
