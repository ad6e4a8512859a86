//! Threads by the words of their titles, and the words of conversations. Titles can be encrypted in the database, so
//! queries cannot search them.

use super::kept::{Listed, ThreadFilter, ThreadMeta};
use super::{Error, Result, Service, StatesOf, ThreadView};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::conversation_words;

/// Characters of a derived title.
const TITLE: usize = 120;

/// Threads that are looked through, in the order of the filter.
const LOOKED_THROUGH: u32 = 10_000;

/// Threads that are listed at a time.
const AT_ONCE: u32 = 500;

impl ThreadView {
    /// Returns the title of a thread: the one that was set, or its first words.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        set_title(&self.meta, &self.info).or_else(|| {
            let first = self.state.as_ref()?.first_message()?;
            Some(first.chars().take(TITLE).collect())
        })
    }
}

fn set_title(meta: &ThreadMeta, info: &ThreadInfo) -> Option<String> {
    let of_client = meta.metadata["title"].as_str().filter(|title| !title.trim().is_empty());
    of_client.map(str::to_owned).or_else(|| Some(info.shown_title()?.into_owned()))
}

impl Service {
    /// Returns the words of a query for conversations, as filters of threads and runs take them.
    ///
    /// # Errors
    /// [`Error::Unsearchable`] if threads are encrypted.
    pub fn conversation_words(&self, query: &str) -> Result<Vec<Vec<i64>>, Error> {
        self.check_searchable(!query.is_empty())?;
        Ok(conversation_words(self.tenant(), query))
    }

    /// Checks that texts of threads and runs can be searched, if that is wanted.
    ///
    /// # Errors
    /// [`Error::Unsearchable`] if threads are encrypted.
    pub fn check_searchable(&self, is_wanted: bool) -> Result<(), Error> {
        let is_searchable = !is_wanted || self.runtime().has_conversation_words();
        if is_searchable { Ok(()) } else { Err(Error::Unsearchable) }
    }

    /// Lists threads whose titles contain `words`, ignoring case, and their total number, among the first 10,000 that
    /// match the filter otherwise.
    pub async fn find_titled(
        &self,
        filter: &ThreadFilter,
        words: &str,
        states: StatesOf,
    ) -> Result<(Vec<ThreadView>, u64)> {
        let words = words.to_lowercase();
        let states = if states == StatesOf::None { StatesOf::Untitled } else { states };
        let wanted = filter.offset as usize..filter.offset.saturating_add(filter.limit) as usize;
        let mut views = Vec::new();
        let mut total = 0;
        for offset in (0..LOOKED_THROUGH).step_by(AT_ONCE as usize) {
            let page = ThreadFilter { limit: AT_ONCE, offset, ..filter.clone() };
            let (listed, all) = self.kept().threads(&page).await?;
            let is_last = u64::from(offset + AT_ONCE) >= all;
            for one in listed {
                if let Some(view) = self.titled(one, &words, states).await? {
                    if wanted.contains(&total) {
                        views.push(view);
                    }
                    total += 1;
                }
            }
            if is_last {
                break;
            }
        }
        Ok((views, total as u64))
    }

    /// Returns a thread if its title has the words. Its state is read only if it has no other title, or is requested.
    async fn titled(
        &self,
        one: Listed,
        words: &str,
        states: StatesOf,
    ) -> Result<Option<ThreadView>> {
        // Deleted at this moment.
        let Some(info) = self.known(ThreadId(one.id)).await? else { return Ok(None) };
        let has = |title: String| title.to_lowercase().contains(words);
        if set_title(&one.meta, &info).is_some_and(|title| !has(title)) {
            return Ok(None);
        }
        let states = states.of_listed(&info);
        let view = self.view(info, one.meta, one.has_open_run, states).await?;
        Ok(view.title().is_some_and(has).then_some(view))
    }
}
