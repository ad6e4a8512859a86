//! The guest's time: its start, its computation, and its sleep.
//!
//! Sleep takes no real time: the guest's clock advances and its time limit counts it.

use std::time::Duration;

use wasmtime::{Caller, Linker};

use super::files::Errno;
use super::guest::Guest;
use super::host::{Host, Stop, WASI, number, wasi};

const REALTIME: u32 = 0;
const SUBSCRIPTION: u32 = 48;
const EVENT: u32 = 32;
/// Most events waited for at once.
const MOST: u32 = 256;

pub fn link(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    wasi!(linker, "clock_res_get", |guest, _: u32, at: u32| guest.put_u64(at, 1));
    linker.func_wrap(
        WASI,
        "clock_time_get",
        |mut c: Caller<'_, Host>, clock: u32, _: u64, at: u32| {
            let passed = passed(&c);
            number(Guest::of(&mut c).and_then(|mut guest| {
                let time = if clock == REALTIME { guest.host.started + passed } else { passed };
                guest.put_u64(at, nanoseconds(time))
            }))
        },
    )?;
    linker.func_wrap(
        WASI,
        "poll_oneoff",
        |mut c: Caller<'_, Host>,
         list: u32,
         events: u32,
         count: u32,
         done: u32|
         -> wasmtime::Result<u32> {
            let passed = passed(&c);
            let answer = Guest::of(&mut c)
                .and_then(|mut guest| poll(&mut guest, (list, events), count, done, passed));
            if c.data().slept >= c.data().limits.time {
                return Err(wasmtime::Error::new(Stop::Slept));
            }
            Ok(number(answer))
        },
    )?;
    Ok(())
}

/// Returns how long the guest has been running, as it sees it: a nanosecond per unit of fuel, and its sleep.
fn passed(caller: &Caller<'_, Host>) -> Duration {
    let burnt = u64::MAX - caller.get_fuel().unwrap_or(u64::MAX);
    Duration::from_nanos(burnt).saturating_add(caller.data().slept)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn poll(
    guest: &mut Guest<'_>,
    lists: (u32, u32),
    count: u32,
    done: u32,
    passed: Duration,
) -> Result<(), Errno> {
    if count == 0 || count > MOST {
        return Err(Errno::Invalid);
    }
    let mut shortest: Option<Duration> = None;
    let mut ready = Vec::new();
    for index in 0..count {
        let at = lists.0.checked_add(index * SUBSCRIPTION).ok_or(Errno::Invalid)?;
        let user = guest.u64(at)?;
        let kind = guest.u16(at.saturating_add(8))? & 0xff;
        if kind != 0 {
            // What is open is always ready.
            ready.push((user, kind));
            continue;
        }
        let clock = guest.u32(at.saturating_add(16))?;
        let moment = Duration::from_nanos(guest.u64(at.saturating_add(24))?);
        let is_absolute = guest.u16(at.saturating_add(40))? & 1 != 0;
        let now = if clock == REALTIME { guest.host.started + passed } else { passed };
        let wait = if is_absolute { moment.saturating_sub(now) } else { moment };
        shortest = Some(shortest.map_or(wait, |least| least.min(wait)));
        ready.push((user, 0));
    }
    if ready.iter().any(|(_, kind)| *kind != 0) {
        ready.retain(|(_, kind)| *kind != 0);
    } else if let Some(wait) = shortest {
        guest.host.slept = guest.host.slept.saturating_add(wait);
        ready.truncate(1);
    }
    for (index, (user, kind)) in (0_u32..).zip(&ready) {
        let at = lists.1.checked_add(index * EVENT).ok_or(Errno::Invalid)?;
        guest.put(at, &[0; EVENT as usize])?;
        guest.put_u64(at, *user)?;
        guest.put(at.saturating_add(10), &kind.to_le_bytes())?;
    }
    guest.put_u32(done, u32::try_from(ready.len()).map_err(|_| Errno::Invalid)?)
}

/// SplitMix64, so that equal runs draw equal numbers. Not for secrets, which it does not contain.
#[derive(Default)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            for (byte, random) in chunk.iter_mut().zip(drawn) {
                *byte = random;
            }
        }
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
