//! What the program counts and times: each instrument defined once, no matter who collects it.
//!
//! Enter at [`install`] to have it collected, and at the functions named after what happened to tell of it.
//! Invariants: recording never waits, and does nothing at all until somebody collects; a label has few values, so
//! ids and the words of people and models are none. Deliberately absent: readers, exporters and addresses, which
//! are `telemetry`'s, and stored rows: what happened is counted when it happens, and a replay counts nothing.

mod definitions;
mod happened;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use opentelemetry::metrics::Meter;

use self::definitions::Instruments;
use perihelion_engine::clock;
use perihelion_engine::observer;

pub use definitions::{DEFINITIONS, Definition, Kind};
pub use happened::*;

/// The instruments of the process, once somebody collects them.
static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();

/// Makes the instruments with a meter, from which they are collected from now on; a second call does nothing.
pub fn install(meter: &Meter) {
    INSTRUMENTS.get_or_init(|| Instruments::new(meter));
    observer::install(happened::EngineMetrics);
}

fn instruments() -> Option<&'static Instruments> {
    INSTRUMENTS.get()
}

/// Tells the instruments, where somebody collects.
fn tell(event: impl FnOnce(&Instruments)) {
    if let Some(to) = instruments() {
        event(to);
    }
}

/// Measures how long something takes, where that is collected.
#[derive(Clone, Copy, Debug)]
pub struct Timer(Option<Instant>);

impl Timer {
    /// Starts measuring.
    pub fn start() -> Self {
        Self(instruments().map(|_| clock::monotonic()))
    }

    fn elapsed(self) -> Option<Duration> {
        self.0.map(|began| clock::monotonic().saturating_duration_since(began))
    }
}
