//! Puts an error in the place of an answer that cannot be read, so that anyone who waits hears of it at once.
//!
//! The reader after this one passes over such lines, as a server may print what it likes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

/// What the reader after this one takes of values in values.
const DEPTH: usize = 127;
/// Of the codes that servers may define, one that says nothing of the request.
const UNREADABLE: i32 = -32099;

/// The lines of a server, each whole, those that cannot be read replaced.
pub(super) struct LineSanitizer<R> {
    inner: BufReader<R>,
    line: Vec<u8>,
    /// How much of `line` was passed on, once it is whole.
    passed: Option<usize>,
    /// Longer lines go by as they are: the reader after this one drops them.
    longest: usize,
    is_overlong: bool,
}

impl<R: AsyncRead + Unpin> LineSanitizer<R> {
    pub fn new(inner: R, longest: usize) -> Self {
        let inner = BufReader::new(inner);
        Self { inner, line: Vec::new(), passed: None, longest, is_overlong: false }
    }

    /// Passes on what there is room for; tells whether there was anything.
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
                if let Some(instead) = replacement(&this.line).or_else(|| paired(&this.line)) {
                    this.line = instead;
                }
                this.passed = Some(0);
            } else if this.is_overlong || this.line.len() > this.longest {
                this.is_overlong = end.is_none();
                this.passed = Some(0);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// What of a message tells that it is an answer, and to what.
#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<IgnoredAny>,
}

/// Returns the error that stands for an answer that cannot be read; none for all other lines.
fn replacement(line: &[u8]) -> Option<Vec<u8>> {
    let why = match std::str::from_utf8(line) {
        Err(error) => format!("it is not UTF-8 at byte {}", error.valid_up_to()),
        Ok(_) if depth(line) > DEPTH => format!("it nests values deeper than {DEPTH} levels"),
        Ok(_) => return None,
    };
    let head: Head = serde_json::from_str(&String::from_utf8_lossy(line)).ok()?;
    let id = head.id.filter(|id| (id.is_string() || id.is_number()) && head.method.is_none())?;
    let message = format!("its answer cannot be read: {why}");
    let error = json!({ "code": UNREADABLE, "message": message });
    Some(format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_bytes())
}

/// Replaces escapes of half a character by the replacement character, as text that is cut during an emoji has them; none
/// where there are none. A reader of JSON refuses the whole line for one of them.
fn paired(line: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let escape = line.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
    };
    let mut fixed: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < line.len() {
        let (length, is_lone) = match (line[at], unit(at)) {
            (b'\\', Some(0xd800..=0xdbff)) => match unit(at + 6) {
                Some(0xdc00..=0xdfff) => (12, false),
                _ => (6, true),
            },
            (b'\\', Some(0xdc00..=0xdfff)) => (6, true),
            (b'\\', _) => (2, false),
            _ => (1, false),
        };
        let end = line.len().min(at + length);
        if is_lone && fixed.is_none() {
            fixed = Some(line[..at].to_vec());
        }
        if let Some(fixed) = &mut fixed {
            fixed.extend_from_slice(if is_lone { b"\\ufffd" } else { &line[at..end] });
        }
        at = end;
    }
    fixed
}

/// Returns how deep values stand in values.
fn depth(json: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    let mut in_string = false;
    let mut is_escaped = false;
    for byte in json {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match byte {
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
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
    async fn an_answer_that_cannot_be_read_becomes_an_error_and_all_else_goes_by() {
        let deep = format!("{{\"id\":\"a\",\"result\":{}{}}}\n", "[".repeat(200), "]".repeat(200));
        let garbled = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"text\":\"\xff\"}}\n";
        for (line, id, why) in
            [(deep.as_bytes(), json!("a"), "deeper"), (garbled, json!(3), "UTF-8 at byte 42")]
        {
            let read_back: Value = serde_json::from_slice(&read(line, 1000).await).unwrap();
            assert_eq!(read_back["id"], id);
            assert!(read_back["error"]["message"].as_str().unwrap().contains(why), "{read_back}");
        }
        let lone = b"{\"id\":1,\"result\":\"\\ud83d\\ude00 \\\\ud800 \\ud83d! \\ude00\"}\n";
        let whole = "{\"id\":1,\"result\":\"\\ud83d\\ude00 \\\\ud800 \\ufffd! \\ufffd\"}\n";
        assert_eq!(read(lone, 1000).await, whole.as_bytes());
        let others = "noise [[[\n{\"id\":1,\"result\":\"\\\"[[{\"}\n\n";
        assert_eq!(read(others.as_bytes(), 1000).await, others.as_bytes());
        assert_eq!(read(others.as_bytes(), 4).await, others.as_bytes());
        let request = b"{\"id\":1,\"method\":\"ping\",\"params\":\"\xff\"}\n";
        assert_eq!(read(request, 1000).await, request);
        let overlong = [&garbled[..], b"{}\n"].concat();
        assert_eq!(read(&overlong, 10).await, overlong);
    }
}
