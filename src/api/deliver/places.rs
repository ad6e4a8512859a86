//! How many deliveries are under way at the same time, in all and of one tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Deliveries that are under way at once.
const AT_ONCE: u32 = 32;

/// Those of one tenant, so that receivers of its that do not answer leave places to the others.
const OF_TENANT: u32 = 8;

/// Deliveries that are under way, by tenant.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<String, u32>>>);

/// The place of one delivery, until it is dropped.
pub(super) struct Place {
    tenant: String,
    places: Places,
}

impl Places {
    /// Returns how many places are free.
    pub(super) fn free(&self) -> u32 {
        AT_ONCE.saturating_sub(self.taken().values().sum())
    }

    /// Returns the tenants that have as many as they may have.
    pub(super) fn full(&self) -> Vec<String> {
        let taken = self.taken();
        let full = taken.iter().filter(|(_, taken)| **taken >= OF_TENANT);
        full.map(|(tenant, _)| tenant.clone()).collect()
    }

    /// Takes a place for a tenant, if there is one.
    pub(super) fn take(&self, tenant: &str) -> Option<Place> {
        let mut taken = self.taken();
        let of_all: u32 = taken.values().sum();
        let of_tenant = taken.get(tenant).copied().unwrap_or_default();
        if of_tenant >= OF_TENANT || of_all >= AT_ONCE {
            return None;
        }
        taken.insert(tenant.to_owned(), of_tenant + 1);
        Some(Place { tenant: tenant.to_owned(), places: self.clone() })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(of_tenant) = taken.get_mut(&self.tenant) {
            *of_tenant = of_tenant.saturating_sub(1);
            if *of_tenant == 0 {
                taken.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_takes_all_places_and_what_is_given_back_is_free() {
        let places = Places::default();
        let mut held: Vec<Place> = (0..AT_ONCE).filter_map(|_| places.take("a")).collect();
        assert_eq!((held.len() as u32, places.full()), (OF_TENANT, vec!["a".to_owned()]));
        assert_eq!(places.free(), AT_ONCE - OF_TENANT);
        for tenant in ["b", "c", "d", "e"] {
            held.extend((0..OF_TENANT).filter_map(|_| places.take(tenant)));
        }
        assert_eq!(places.free(), 0);
        assert!(places.take("f").is_none());
        held.pop();
        assert!(places.take("f").is_some());
        held.clear();
        assert_eq!((places.free(), places.full()), (AT_ONCE, Vec::new()));
    }
}
