//! Pages that were read a moment ago.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::{Limits, Page, clock};

/// Pages by the address that was asked for.
#[derive(Default)]
pub struct Cache(Mutex<HashMap<String, (Instant, Page)>>);

impl Cache {
    pub fn get(&self, address: &str, limits: &Limits) -> Option<Page> {
        let pages = self.0.lock();
        let (read, page) = pages.get(address)?;
        let is_fresh = clock::monotonic().saturating_duration_since(*read) < limits.keep;
        is_fresh.then(|| Page { cached: true, ..page.clone() })
    }

    pub fn put(&self, address: &str, page: &Page, limits: &Limits) {
        let mut pages = self.0.lock();
        if pages.len() >= limits.pages
            && let Some(oldest) =
                pages.iter().min_by_key(|(_, (read, _))| *read).map(|(address, _)| address.clone())
        {
            pages.remove(&oldest);
        }
        pages.insert(address.to_owned(), (clock::monotonic(), page.clone()));
    }
}
