//! How many files and sockets this process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What a service needs beside its connections: databases, children, calls to models.
const RESERVE: u64 = 256;

/// Raises the soft limit to the hard one, and returns how many connections there is room for, at most `wanted`.
///
/// Where nothing is known of the limits, what is wanted stands.
pub(super) fn connections(wanted: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return wanted };
    let needed = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(RESERVE);
    let raised = needed.min(hard).max(soft);
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
        Ok(()) => raised,
        Err(_) => soft,
    };
    room(limit, wanted)
}

/// Returns how many of so many descriptors are left for connections.
fn room(limit: u64, wanted: usize) -> usize {
    let left = limit.saturating_sub(RESERVE).max(limit / 2).max(1);
    usize::try_from(left).unwrap_or(usize::MAX).min(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_what_serves_them() {
        for (limit, wanted, room_for) in
            [(20_000, 16_384, 16_384), (1_024, 16_384, 768), (64, 16_384, 32), (1_024, 8, 8)]
        {
            assert_eq!(room(limit, wanted), room_for, "{limit}");
        }
    }
}
