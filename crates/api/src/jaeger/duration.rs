//! Durations as Go writes them: `1.5s`, `100ms`, `1h2m`.

use chrono::TimeDelta;

/// Units and their length in nanoseconds; longer names first.
const UNITS: [(&str, f64); 7] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];

/// Reads a duration that is not negative; none when it is not one, or is longer than can be counted.
pub(super) fn parse(text: &str) -> Option<TimeDelta> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest == "0" {
        return Some(TimeDelta::zero());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit = &rest[end..];
        // `m` is also how `ms` begins, so the longest that fits is meant.
        let fitting = UNITS.iter().filter(|(name, _)| unit.starts_with(name));
        let (name, length) = fitting.max_by_key(|(name, _)| name.len())?;
        total += number * length;
        rest = &unit[name.len()..];
    }
    let is_sane = !text.trim().is_empty() && total < 9e18;
    is_sane.then(|| TimeDelta::nanoseconds(total.round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let ms = |ms| Some(TimeDelta::milliseconds(ms));
        let read = ["1.5s", "100ms", "1h2m", "250us", "0", "2m3s"].map(parse);
        let expected = [
            ms(1_500),
            ms(100),
            ms(3_720_000),
            Some(TimeDelta::microseconds(250)),
            ms(0),
            ms(123_000),
        ];
        assert_eq!(read, expected);
        for wrong in ["", "s", "5", "1.2.3s", "-1s", "1 s", "1d", "9999999999h"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
