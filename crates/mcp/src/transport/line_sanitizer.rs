//! Puts messages that can be read in the place of lines that the reader after this one would pass over.
//!
//! A message can have several lines, because some servers format them for people. Other text is ignored: a server can
//! print it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

use super::messages::{self, Scan};

/// The complete lines of a server, with unreadable ones replaced.
pub(super) struct LineSanitizer<R> {
    inner: BufReader<R>,
    line: Vec<u8>,
    /// Lines that began a message, which is not whole yet.
    begun: Vec<u8>,
    scan: Scan,
    /// How much of `line` was passed on, once it is whole.
    passed: Option<usize>,
    /// Longer lines go by as they are: the reader after this one drops them.
    longest: usize,
    is_overlong: bool,
}

impl<R: AsyncRead + Unpin> LineSanitizer<R> {
    pub fn new(inner: R, longest: usize) -> Self {
        Self {
            inner: BufReader::new(inner),
            line: Vec::new(),
            begun: Vec::new(),
            scan: Scan::default(),
            passed: None,
            longest,
            is_overlong: false,
        }
    }

    /// Accepts a complete line: passes on the message that it is or ends, and keeps the beginning of one.
    fn end_line(&mut self) {
        // A whole message is one, whatever came before it.
        if self.begun.is_empty() || messages::is_message(&self.line) {
            self.begun.clear();
            if messages::is_begun(&self.line) {
                self.scan = Scan::default();
                self.buffer();
            } else {
                self.pass_on();
            }
            return;
        }
        self.buffer();
        if self.begun.len() > self.longest {
            self.begun.clear();
        } else if self.scan.depth == 0 {
            self.line.append(&mut self.begun);
            self.pass_on();
        }
    }

    fn buffer(&mut self) {
        self.line.iter().for_each(|byte| self.scan.take(*byte));
        self.begun.append(&mut self.line);
    }

    fn pass_on(&mut self) {
        if let Some(messages) = messages::repaired(&self.line) {
            self.line = messages.iter().flat_map(|one| [one.as_bytes(), b"\n"].concat()).collect();
        }
        self.passed = Some(0);
    }

    /// Passes on as much as there is space for; returns whether there was any.
    fn pass(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let Some(passed) = self.passed else { return false };
        let rest = self.line.get(passed..).unwrap_or_default();
        let now = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..now).unwrap_or_default());
        self.passed = (now < rest.len()).then_some(passed + now);
        if self.passed.is_none() {
            self.line.clear();
        }
        true
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineSanitizer<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while !this.pass(buffer) {
            let read = ready!(Pin::new(&mut this.inner).poll_fill_buf(context))?;
            if read.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(read.len(), |end| end + 1);
            this.line.extend_from_slice(read.get(..length).unwrap_or_default());
            Pin::new(&mut this.inner).consume(length);
            if end.is_some() && !this.is_overlong && this.line.len() <= this.longest {
                this.end_line();
            } else if this.is_overlong || this.line.len() > this.longest {
                this.is_overlong = end.is_none();
                this.passed = Some(0);
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    async fn read(text: &[u8], longest: usize) -> Vec<u8> {
        let mut all = Vec::new();
        LineSanitizer::new(text, longest).read_to_end(&mut all).await.unwrap();
        all
    }

    #[tokio::test]
    async fn messages_are_repaired_and_joined_and_other_lines_are_skipped() {
        let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1]}}\n";
        for (written, read_back) in [
            (answer.to_owned(), answer.to_owned()),
            (
                "noise\n{\n \"jsonrpc\": \"2.0\",\n \"id\": 1,\n \"result\": {\"a\":\n[1]}\n}\n"
                    .to_owned(),
                format!("noise\n{answer}"),
            ),
            (format!("[\n{answer}]\n"), format!("{answer}]\n")),
            (format!("{{\n\"broken\": \n{answer}"), answer.to_owned()),
            (format!("[{},{}]\n", answer.trim(), answer.trim()), answer.repeat(2)),
        ] {
            let read = String::from_utf8(read(written.as_bytes(), 1000).await).unwrap();
            assert_eq!(read, read_back, "{written}");
        }
        let others = "noise [[[\n{\"id\":1,\"result\":\"\\\"[[{\"}\n\n";
        assert_eq!(read(others.as_bytes(), 4).await, others.as_bytes());
        let garbled = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"text\":\"\xff\"}}\n";
        let overlong = [&garbled[..], b"{}\n"].concat();
        assert_eq!(read(&overlong, 10).await, overlong);
    }
}
