use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest fetch, redirects included, without the pauses between requests to one host.
    pub time: Duration,
    /// Most bytes read of a page.
    pub bytes: usize,
    /// Most characters of Markdown.
    pub characters: usize,
    /// Least time between two requests to one host.
    pub pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(20),
            bytes: 4 << 20,
            characters: 60_000,
            pause: Duration::from_millis(500),
        }
    }
}
