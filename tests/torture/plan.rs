//! What is to befall one process, drawn from the seed and the process's number.

use perihelion::failpoint::{Point, Side};

use super::points::of_runs;
use super::random::Random;

/// What happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, for longer than its lease lasts; then SIGCONT.
    Stop,
    /// A pause of so many milliseconds, while the lease may still be renewed.
    Pause(u64),
}

/// The point at which a process does something to itself.
#[derive(Clone, Copy, Debug)]
pub struct Mine {
    pub point: Point,
    pub side: Side,
    /// Which time it is reached, from 1.
    pub time: u64,
    pub fate: Fate,
}

/// One process's life.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub mine: Option<Mine>,
    /// Milliseconds after which the harness does something to it.
    pub end_after: u64,
    /// Whether they count from its start; otherwise from when it is ready to work.
    pub is_early: bool,
    pub end: Fate,
    /// Microseconds by which its wall clock is off.
    pub skew: i64,
}

const HOUR: i64 = 3_600_000_000;

impl Plan {
    /// Draws a life; `zombies` of 1,000 processes are stopped rather than killed.
    pub fn draw(seed: u64, number: u64, zombies: u64) -> Self {
        let mut random = Random::new(seed, &[3, number]);
        let fate = |random: &mut Random| match random.below(1000) {
            chance if chance < zombies => Fate::Stop,
            chance if chance < zombies + 60 => Fate::Pause(random.between(5, 60)),
            _ => Fate::Kill,
        };
        let mine = random.per_mille(600).then(|| {
            let points: Vec<Point> = of_runs().collect();
            let point = points[random.below(points.len() as u64) as usize];
            let side = if random.per_mille(500) { Side::Before } else { Side::After };
            // Half of them at the first time, a quarter at the second, and so on.
            let time = 1 + u64::from(random.next().trailing_ones().min(7));
            Mine { point, side, time, fate: fate(&mut random) }
        });
        let end = if random.per_mille(zombies) { Fate::Stop } else { Fate::Kill };
        let is_early = random.per_mille(60);
        let end_after = if is_early {
            random.between(1, 60)
        } else if mine.is_some() {
            random.between(100, 600)
        } else {
            random.between(1, 300)
        };
        let skew = match random.below(10) {
            0 => HOUR,
            1 => -HOUR,
            _ => 0,
        };
        Self { mine, end_after, is_early, end, skew }
    }
}
