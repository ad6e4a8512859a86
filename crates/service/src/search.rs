//! Threads by the words of their titles. Titles may stand in the database encrypted, so that no query can look for them.

use super::kept::{Listed, ThreadFilter};
use super::{ClientStatus, Error, Service, ThreadView};
use perihelion_engine::ids::ThreadId;
use perihelion_star::GraphState;

/// Characters of a title that nobody gave.
const TITLE: usize = 120;

/// Threads that are looked through, in the order of the filter.
const LOOKED_THROUGH: u32 = 10_000;

/// Threads that are listed at a time.
const AT_ONCE: u32 = 500;

impl ThreadView {
    /// Returns what a thread is called: as somebody named it, or the words that it began with.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        let named = self.meta.metadata["title"].as_str().filter(|title| !title.trim().is_empty());
        if let Some(named) = named {
            return Some(named.to_owned());
        }
        if let Some(named) = self.info.shown_title() {
            return Some(named.into_owned());
        }
        let state = self.state.as_ref()?;
        let first = match state.of::<GraphState>() {
            Some(star) => star.messages.get(0)?.content.clone(),
            None => state.messages().into_iter().next()?.content,
        };
        Some(first.chars().take(TITLE).collect())
    }
}

impl Service {
    /// Lists threads whose titles have `words`, in any case of letters, and says how many there are in all; among the
    /// first 10,000 that the filter finds otherwise.
    pub async fn find_titled(
        &self,
        filter: &ThreadFilter,
        words: &str,
    ) -> Result<(Vec<ThreadView>, u64), Error> {
        let words = words.to_lowercase();
        let wanted = filter.offset as usize..filter.offset.saturating_add(filter.limit) as usize;
        let mut views = Vec::new();
        let mut total = 0;
        for offset in (0..LOOKED_THROUGH).step_by(AT_ONCE as usize) {
            let page = ThreadFilter { limit: AT_ONCE, offset, ..filter.clone() };
            let (listed, all) = self.kept().threads(&page).await?;
            let is_last = u64::from(offset + AT_ONCE) >= all;
            for one in listed {
                if let Some(view) = self.titled(one, &words).await? {
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

    /// Returns a thread if its title has the words. Its state is read only where it has no other title, or is to be shown.
    async fn titled(&self, one: Listed, words: &str) -> Result<Option<ThreadView>, Error> {
        let info = match self.info(ThreadId(one.id)).await {
            Ok(info) => info,
            // Deleted at this moment.
            Err(Error::UnknownThread(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let has = |title: String| title.to_lowercase().contains(words);
        let unread = ThreadView {
            info,
            status: ClientStatus::Idle,
            meta: one.meta,
            state: None,
            open: Vec::new(),
            asking: Vec::new(),
            was_stopped: false,
        };
        if unread.title().is_some_and(|title| !has(title)) {
            return Ok(None);
        }
        let view = self.view(unread.info, unread.meta, one.has_open_run).await?;
        Ok(view.title().is_some_and(has).then_some(view))
    }
}
