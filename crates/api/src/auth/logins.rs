//! How many logins and registrations are tried: by tenant and name, whether there is such a user or not, and in all.
//!
//! Names share a fixed number of counters, to which a secret of the process leads each: strangers who try other names make
//! the process neither forget what they tried before nor keep more.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;

use axum::response::Response;

use super::rates::{MINUTE, early, refused};
use perihelion_engine::clock::Rate;

/// Counters that the names share.
const COUNTERS: u64 = 4_096;

/// What is tried for one name in a minute.
const OF_ONE: u32 = 10;

/// What is tried for all names together in a minute.
const OF_ALL: u32 = 300;

/// What was tried lately in one process.
pub(super) struct Logins {
    of_one: Vec<Rate>,
    of_all: Rate,
    secret: RandomState,
}

impl Logins {
    pub(super) fn new() -> Self {
        let counter = |most| Rate::new(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN), MINUTE);
        let of_one = (0..COUNTERS).map(|_| counter(OF_ONE)).collect();
        Self { of_one, of_all: counter(OF_ALL), secret: RandomState::new() }
    }

    /// Counts one more of a name, and returns how it is refused if it is one too many.
    pub(super) fn refusal(&self, tenant: &str, name: &str) -> Option<Response> {
        let place = self.secret.hash_one((tenant, name.trim().to_lowercase())) % COUNTERS;
        let of_one = usize::try_from(place).ok().and_then(|place| self.of_one.get(place));
        // In this order, so that who guesses at one name takes nothing from the others.
        let seconds = of_one.and_then(early).or_else(|| early(&self.of_all))?;
        Some(refused("logins", seconds))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{StatusCode, header};

    use super::*;

    /// S3.04
    #[test]
    fn guesses_block_one_name_and_too_many_guesses_block_all_logins() {
        let logins = Logins::new();
        for _ in 0..OF_ONE {
            assert!(logins.refusal("a", "Ann").is_none());
        }
        for same in ["ann", " ANN "] {
            let refused = logins.refusal("a", same).unwrap();
            assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
            assert!(refused.headers().contains_key(header::RETRY_AFTER));
        }
        // One of them may share the counter.
        let other = ["b", "c", "d"].iter().any(|tenant| logins.refusal(tenant, "ann").is_none());
        assert!(other, "another tenant has an Ann of its own");
        let others = (0..2 * OF_ALL).map(|one| logins.refusal("a", &one.to_string()));
        let taken = others.filter(Option::is_none).count();
        assert!((100..500).contains(&taken), "{taken}");
    }
}
