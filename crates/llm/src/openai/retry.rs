//! When a failed attempt is made again, and after how long.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use reqwest::header::HeaderMap;

use perihelion_engine::clock;

/// Returns the waits between attempts, as many as there are retries.
pub(super) fn delays(
    retries: u32,
    first: Duration,
    longest: Duration,
) -> impl Iterator<Item = Duration> + Send + use<> {
    ExponentialBuilder::default()
        .with_min_delay(first)
        .with_max_delay(longest)
        .with_max_times(usize::try_from(retries).unwrap_or(usize::MAX))
        .with_jitter()
        .build()
}

/// Returns whether a status may pass by itself.
pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429) || status >= 500
}

/// Reads `Retry-After` as seconds or as an HTTP date, and `retry-after-ms` where it is sent.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.to_utc() - clock::now()).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            reqwest::header::HeaderName::from_static(name),
            value.parse().unwrap(),
        )])
    }

    #[test]
    fn retry_after_is_read_as_seconds_as_milliseconds_and_as_a_date() {
        assert_eq!(retry_after(&headers("retry-after", "7")), Some(Duration::from_secs(7)));
        assert_eq!(
            retry_after(&headers("retry-after-ms", "250")),
            Some(Duration::from_millis(250))
        );
        let past = headers("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(retry_after(&past), Some(Duration::ZERO));
        let future = headers("retry-after", "Sun, 21 Oct 2198 07:28:00 GMT");
        assert!(retry_after(&future).unwrap() > Duration::from_secs(1_000_000));
        assert_eq!(retry_after(&headers("retry-after", "soon")), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
