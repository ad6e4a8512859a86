//! How many of something are under way at the same time, of one tenant and in all.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

#[derive(Default)]
struct Counts {
    in_all: u32,
    by_tenant: HashMap<String, u32>,
}

#[derive(Clone)]
pub(crate) struct Places {
    of_tenant: u32,
    in_all: u32,
    counts: Arc<Mutex<Counts>>,
}

/// A place that is used until its last copy is dropped.
#[derive(Clone)]
pub(crate) struct Place(#[expect(dead_code, reason = "only held")] Arc<Taken>);

struct Taken {
    tenant: String,
    counts: Arc<Mutex<Counts>>,
}

impl Places {
    /// Bounds how many one tenant takes, and all together.
    pub(crate) fn new(of_tenant: u32, in_all: u32) -> Self {
        Self { of_tenant, in_all, counts: Arc::default() }
    }

    pub(crate) fn of_tenant(&self) -> u32 {
        self.of_tenant
    }

    pub(crate) fn free(&self) -> u32 {
        self.in_all.saturating_sub(self.counts.lock().in_all)
    }

    /// Returns the tenants that have reached their limit.
    pub(crate) fn full(&self) -> Vec<String> {
        let counts = self.counts.lock();
        let full = counts.by_tenant.iter().filter(|(_, taken)| **taken >= self.of_tenant);
        full.map(|(tenant, _)| tenant.clone()).collect()
    }

    pub(crate) fn take(&self, tenant: &str) -> Option<Place> {
        let mut counts = self.counts.lock();
        let of_tenant = counts.by_tenant.get(tenant).copied().unwrap_or_default();
        if of_tenant >= self.of_tenant || counts.in_all >= self.in_all {
            return None;
        }
        counts.in_all += 1;
        counts.by_tenant.insert(tenant.to_owned(), of_tenant + 1);
        let counts = Arc::clone(&self.counts);
        Some(Place(Arc::new(Taken { tenant: tenant.to_owned(), counts })))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.in_all = counts.in_all.saturating_sub(1);
        if let Some(of_tenant) = counts.by_tenant.get_mut(&self.tenant) {
            *of_tenant = of_tenant.saturating_sub(1);
            if *of_tenant == 0 {
                counts.by_tenant.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_takes_all_places_and_returned_places_are_free() {
        let places = Places::new(8, 32);
        let mut kept: Vec<Place> = (0..32).filter_map(|_| places.take("a")).collect();
        assert_eq!((kept.len(), places.full()), (8, vec!["a".to_owned()]));
        assert_eq!(places.free(), 24);
        for tenant in ["b", "c", "d", "e"] {
            kept.extend((0..8).filter_map(|_| places.take(tenant)));
        }
        assert_eq!(places.free(), 0);
        assert!(places.take("f").is_none());
        kept.pop();
        assert!(places.take("f").is_some());
        kept.clear();
        assert_eq!((places.free(), places.full()), (32, Vec::new()));
    }
}
