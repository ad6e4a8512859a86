//! Drains a server's stderr, always and without bound, and keeps the last lines of it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

use crate::configuration::redact::Secrets;

const LINES: usize = 20;
/// Longer lines are cut, so that a flood without newlines takes no memory.
const LINE_BYTES: usize = 400;

pub(super) struct Tail {
    server: String,
    secrets: Secrets,
    lines: Mutex<VecDeque<String>>,
    /// Cancelled at the end of the stream.
    pub ended: CancellationToken,
}

impl Tail {
    pub fn new(server: &str, secrets: Secrets) -> Self {
        let lines = Mutex::new(VecDeque::with_capacity(LINES));
        Self { server: server.to_owned(), secrets, lines, ended: CancellationToken::new() }
    }

    /// Returns the lines kept, oldest first, with secrets redacted.
    pub fn text(&self) -> String {
        let lines = self.lines.lock();
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    pub async fn drain(self: Arc<Self>, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8192];
        let mut line = Vec::new();
        let mut is_cut = false;
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            for &byte in buffer.get(..read).unwrap_or_default() {
                if byte == b'\n' {
                    self.keep(&line, is_cut);
                    line.clear();
                    is_cut = false;
                } else if line.len() < LINE_BYTES {
                    line.push(byte);
                } else {
                    is_cut = true;
                }
            }
        }
        self.keep(&line, is_cut);
        self.ended.cancel();
    }

    fn keep(&self, line: &[u8], is_cut: bool) {
        let line = String::from_utf8_lossy(line);
        let line = if is_cut {
            // The last letter may have been cut as well.
            self.secrets.redact_beginning(line.trim_end_matches('\u{fffd}'))
        } else {
            self.secrets.redact(&line)
        };
        let line = line.trim().to_owned();
        if line.is_empty() {
            return;
        }
        tracing::debug!(server = %self.server, %line, "MCP server wrote to stderr");
        let mut lines = self.lines.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_returned_without_secrets_and_endless_ones_are_cut() {
        let mut text = "first\n".repeat(100).into_bytes();
        let before = "x".repeat(LINE_BYTES - 5);
        text.extend(format!("{before}s3cret-token, and more\n").as_bytes());
        text.extend("é".repeat(10_000).as_bytes());
        text.extend(b"\nlast with s3cret-token");
        let mut secrets = Secrets::default();
        secrets.add("s3cret-token");
        let tail = Arc::new(Tail::new("x", secrets));
        tail.clone().drain(text.as_slice()).await;
        tail.ended.cancelled().await;
        let kept = tail.text();
        assert_eq!(kept.lines().count(), LINES);
        assert!(
            !kept.contains("s3c")
                && kept.ends_with("\nlast with [redacted]")
                && kept.len() < LINES * (LINE_BYTES + 4),
            "{kept}"
        );
    }
}
