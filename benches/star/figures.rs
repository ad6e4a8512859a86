//! From times to figures.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

/// Rounds to so many digits after the point.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// Returns the median: the mean of the two middle values where there are two. 0 of nothing.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// Returns the nearest-rank percentile of sorted values; 0 of nothing.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or_default()
}

/// Returns µs.
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Turns node entries and the end of the call into the times of the steps, in µs.
pub fn steps(mut entries: Vec<Instant>, end: Instant) -> Vec<f64> {
    entries.push(end);
    entries.windows(2).map(|pair| micros(pair[1] - pair[0])).collect()
}

/// Sums up the steps of all threads: mean, median and 99th percentile of the first and last tenth of each, and of all.
pub fn summary(threads: &[Vec<f64>]) -> Map<String, Value> {
    let tenth = |steps: &Vec<f64>| (steps.len() / 10).max(1).min(steps.len());
    let first = threads.iter().flat_map(|steps| &steps[..tenth(steps)]).copied().collect();
    let last = threads.iter().flat_map(|steps| &steps[steps.len() - tenth(steps)..]);
    let parts: [(&str, Vec<f64>); 3] =
        [("first10", first), ("last10", last.copied().collect()), ("all", threads.concat())];
    let mut out = Map::new();
    for (name, mut times) in parts {
        let middle = median(&mut times);
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        out.insert(format!("{name}_mean_us"), json!(rounded(mean, 1)));
        out.insert(format!("{name}_median_us"), json!(rounded(middle, 1)));
        out.insert(format!("{name}_p99_us"), json!(rounded(percentile(&times, 0.99), 1)));
    }
    out
}
