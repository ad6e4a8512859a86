//! The metrics of the program: each instrument is defined once, for every collector.
//!
//! Enter at [`install`] to collect it, and at the functions named after events to record them. Invariants: recording
//! never waits, and has no effect without a collector; a label has few values, so IDs and texts of people and models
//! are never labels. Deliberately absent: readers, exporters and addresses, which are in `telemetry`, and stored rows:
//! events are counted when they happen, and a replay counts none.

mod definitions;
mod happened;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use opentelemetry::metrics::Meter;

use perihelion_clock as clock;

pub use definitions::{DEFINITIONS, Definition, Instruments, Kind, label};
pub use happened::*;

/// The instruments of the process, if they are collected.
static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();

/// Makes the instruments with a meter, which collects them from now on; a second call has no effect.
pub fn install(meter: &Meter) {
    INSTRUMENTS.get_or_init(|| Instruments::new(meter));
}

/// Returns the instruments, if they are collected.
pub fn instruments() -> Option<&'static Instruments> {
    INSTRUMENTS.get()
}

/// Calls a function with the instruments, if they are collected.
pub fn tell(event: impl FnOnce(&Instruments)) {
    if let Some(to) = instruments() {
        event(to);
    }
}

/// Measures a duration, if it is collected.
#[derive(Clone, Copy, Debug)]
pub struct Timer(Option<Instant>);

impl Timer {
    pub fn start() -> Self {
        Self(instruments().map(|_| clock::monotonic()))
    }

    fn elapsed(self) -> Option<Duration> {
        self.0.map(|began| clock::monotonic().saturating_duration_since(began))
    }
}
