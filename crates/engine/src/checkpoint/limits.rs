//! Values of the trait within the range of a database.

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, SubsecRound, Utc};

/// A lease never needs to be longer; far longer ones overflow the database's time.
const LONGEST_LEASE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Converts a step number or a fencing token; a number beyond the database's range matches no row.
pub(super) fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn lease(ttl: Duration) -> Duration {
    ttl.min(LONGEST_LEASE)
}

/// Converts a lease time to whole microseconds.
pub(super) fn micros(ttl: Duration) -> i64 {
    i64::try_from(lease(ttl).as_micros()).unwrap_or(i64::MAX)
}

/// Cuts a time to the microseconds that every store keeps.
pub(super) fn moment(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(6)
}

/// Replaces NUL characters, which Postgres keeps in no text, so that a message with one is not lost.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
