//! Trace and span ids that anyone can compute from a thread and a run's number.

use std::fmt;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use perihelion_engine::ids::ThreadId;

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Returns the bytes as they go over the wire.
            pub fn to_bytes(self) -> [u8; $bytes] {
                self.0
            }

            /// Takes the first bytes of the digest of `text`; never the invalid id of zeros.
            fn digest(text: &str) -> Self {
                let digest = Sha256::digest(text.as_bytes());
                let mut bytes = [0; $bytes];
                bytes.copy_from_slice(&digest[..$bytes]);
                Self::valid(bytes)
            }

            fn valid(mut bytes: [u8; $bytes]) -> Self {
                if bytes == [0; $bytes] {
                    bytes[$bytes - 1] = 1;
                }
                Self(bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

hex_id! {
    /// Names a trace: a run with the runs that continued with it.
    TraceId, 16
}
hex_id! {
    SpanId, 8
}

/// The part that distinguishes a tool call's span from other ones at the same place.
pub(super) const TOOL: &str = "tool";

impl TraceId {
    /// Derives the id of the trace that begins with a run: SHA-256 of `trace/THREAD/RUN`, its first 16 bytes.
    pub fn of_run(thread: ThreadId, run: u32) -> Self {
        Self::digest(&format!("trace/{thread}/{run}"))
    }

    /// Reads an id of up to 32 hexadecimal digits; leading zeros may be missing, dashes are skipped.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        // `from_str_radix` would take a sign as well.
        if digits.is_empty() || digits.len() > 32 || !digits.chars().all(|c| c.is_ascii_hexdigit())
        {
            return None;
        }
        u128::from_str_radix(&digits, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    /// Returns the id that all runs of a thread share under `traces.scope = "thread"`: the thread's own.
    pub fn of_thread(thread: ThreadId) -> Self {
        Self::valid(thread.0.into_bytes())
    }
}

impl SpanId {
    /// Derives the id of a trace's root: SHA-256 of `span/THREAD/RUN`, its first 8 bytes.
    pub fn root(thread: ThreadId, run: u32) -> Self {
        Self::digest(&format!("span/{thread}/{run}"))
    }

    /// Derives the ID of a span from its place and the key of its effect, in hexadecimal; `what` separates kinds.
    pub(super) fn at(
        thread: ThreadId,
        run: u32,
        step: u64,
        task: u32,
        what: &str,
        key: &str,
    ) -> Self {
        Self::digest(&format!("span/{thread}/{run}/{step}/{task}/{what}/{key}"))
    }

    /// Derives the id under which a span that may still change is sent after a run.
    pub(super) fn provisional(self, run: u32) -> Self {
        Self::digest(&format!("open/{self}/{run}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.12: the mapping from thread and run to trace is public, so these values must never change.
    #[test]
    fn ids_follow_from_the_thread_and_the_run_number() {
        let thread: ThreadId = "0190a5b4-0000-7000-8000-000000000001".parse().unwrap();
        // printf 'trace/0190a5b4-0000-7000-8000-000000000001/1' | sha256sum | cut -c1-32
        assert_eq!(TraceId::of_run(thread, 1).to_string(), "0cce7d453421b911909923d7725cd4b7");
        assert_eq!(SpanId::root(thread, 1).to_string(), "fd5cd769cdb729ae");
        assert_eq!(TraceId::of_thread(thread).to_string(), "0190a5b4000070008000000000000001");
        for text in ["cce7d453421b911909923d7725cd4b7", "0CCE7D45-3421-b911-9099-23d7725cd4b7"] {
            assert_eq!(TraceId::from_hex(text), Some(TraceId::of_run(thread, 1)));
        }
        for text in ["", "-", "x", "+1", "00cce7d453421b911909923d7725cd4b7"] {
            assert_eq!(TraceId::from_hex(text), None, "{text}");
        }
        assert_ne!(TraceId::of_thread(ThreadId(uuid::Uuid::nil())).to_bytes(), [0; 16]);
    }
}
