//! Pages that were read a moment ago.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{Page, clock};

/// How long a page is cached.
const FRESH: Duration = Duration::from_secs(900);
/// Most pages that are cached.
const PAGES: usize = 256;

/// Pages by the address that was asked for.
#[derive(Default)]
pub struct Cache(Mutex<HashMap<String, (Instant, Page)>>);

impl Cache {
    pub fn get(&self, address: &str) -> Option<Page> {
        let pages = self.0.lock();
        let (read, page) = pages.get(address)?;
        let is_fresh = clock::monotonic().saturating_duration_since(*read) < FRESH;
        is_fresh.then(|| Page { cached: true, ..page.clone() })
    }

    pub fn put(&self, address: &str, page: &Page) {
        let mut pages = self.0.lock();
        if pages.len() >= PAGES
            && let Some(oldest) =
                pages.iter().min_by_key(|(_, (read, _))| *read).map(|(address, _)| address.clone())
        {
            pages.remove(&oldest);
        }
        pages.insert(address.to_owned(), (clock::monotonic(), page.clone()));
    }
}
