use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest fetch, redirects included, without the pauses between requests to one host.
    pub time: Duration,
    /// Most bytes read of a page.
    pub bytes: usize,
    /// Most bytes of a document, which is read whole or not at all.
    pub document_bytes: usize,
    /// Most characters of Markdown.
    pub characters: usize,
    /// Most links listed of a page.
    pub links: usize,
    /// Least time between two requests to one host.
    pub pause: Duration,
    /// How long a page is cached.
    pub keep: Duration,
    /// Pages kept.
    pub pages: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(20),
            bytes: 4 << 20,
            document_bytes: 32 << 20,
            characters: 60_000,
            links: 100,
            pause: Duration::from_millis(500),
            keep: Duration::from_secs(900),
            pages: 256,
        }
    }
}
