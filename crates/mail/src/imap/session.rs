//! A session with an IMAP server: commands, and the answer to each.

use std::collections::BTreeMap;

use imap_proto::{MailboxDatum, Response, Status};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::utf7::encoded;
use crate::account::GOODBYE;
use crate::query::quoted;
use crate::{Error, Result};

/// Most bytes of one response.
const LARGEST: usize = 512 << 20;

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A session; each command waits for its answer.
pub struct Imap<S = Box<dyn Stream>> {
    stream: S,
    unread: Vec<u8>,
    commands: u32,
    /// The server's own names of folders that it does not encode as the standard says.
    pub unencoded: BTreeMap<String, String>,
}

/// The responses to a command, and the line that ended it without its tag.
pub struct Answer {
    pub responses: Vec<Response<'static>>,
    pub status: Status,
    pub line: String,
}

impl<S: Stream> Imap<S> {
    pub async fn begin(stream: S) -> Result<Self> {
        let mut session = Self::greeted(stream);
        session.response().await?;
        Ok(session)
    }

    /// Continues a session whose server has sent its greeting.
    pub fn greeted(stream: S) -> Self {
        Self { stream, unread: Vec::new(), commands: 0, unencoded: BTreeMap::new() }
    }

    /// Returns the stream. Bytes after the last answer are dropped, because before encryption any host could have sent
    /// them.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Runs a command that must succeed.
    pub async fn run(&mut self, command: &str) -> Result<Vec<Response<'static>>> {
        self.ask(command).await?.succeeded()
    }

    /// Runs a command and returns any answer. Each literal is on a new line after its length.
    pub async fn ask(&mut self, command: &str) -> Result<Answer> {
        self.ask_in_parts(command.split("\r\n").map(str::as_bytes)).await
    }

    pub async fn select(&mut self, folder: &str) -> Result<Vec<Response<'static>>> {
        let name = self.name(folder)?;
        self.run(&format!("SELECT {name}")).await
    }

    pub async fn examine(&mut self, folder: &str) -> Result<()> {
        let name = self.name(folder)?;
        self.run(&format!("EXAMINE {name}")).await.map(drop)
    }

    pub async fn create(&mut self, folder: &str) -> Result<()> {
        let name = self.name(folder)?;
        self.run(&format!("CREATE {name}")).await.map(drop)
    }

    /// Returns the numbers of the messages in the open folder that match a key.
    pub async fn search(&mut self, key: &str) -> Result<Vec<u32>> {
        let responses = self.run(&format!("UID SEARCH {key}")).await?;
        let found = responses.into_iter().filter_map(|response| match response {
            Response::MailboxData(MailboxDatum::Search(found)) => Some(found),
            _ => None,
        });
        Ok(found.flatten().collect())
    }

    pub async fn append(&mut self, folder: &str, flags: &str, bytes: &[u8]) -> Result<()> {
        let command = format!("APPEND {} ({flags}) {{{}}}", self.name(folder)?, bytes.len());
        let answer = self.ask_in_parts([command.as_bytes(), bytes].into_iter()).await?;
        answer.succeeded().map(drop)
    }

    /// Ends the session, whatever the server answers.
    pub async fn log_out(mut self) {
        let _ = tokio::time::timeout(GOODBYE, self.run("LOGOUT")).await;
    }

    /// Returns the name of a folder as a command writes it.
    fn name(&self, folder: &str) -> Result<String> {
        let own = self.unencoded.get(folder);
        let quoted = quoted("the name of a folder", own.map_or(folder, String::as_str))?;
        Ok(if own.is_some() { quoted } else { encoded(&quoted) })
    }

    /// Runs a command; each part after the first is sent when the server asks for it.
    async fn ask_in_parts(&mut self, parts: impl Iterator<Item = &[u8]> + Send) -> Result<Answer> {
        self.commands += 1;
        let tag = format!("P{}", self.commands);
        let mut responses = Vec::new();
        let mut sent = format!("{tag} ").into_bytes();
        for part in parts {
            sent.extend(part);
            sent.extend(b"\r\n");
            self.stream.write_all(&sent).await.map_err(Error::Broken)?;
            self.stream.flush().await.map_err(Error::Broken)?;
            sent.clear();
            loop {
                match self.response().await? {
                    (Response::Done { tag: ended, status, .. }, line) if ended.0 == tag => {
                        return Ok(Answer { responses, status, line });
                    }
                    (Response::Continue(_), _) => break,
                    (other, _) => responses.push(other),
                }
            }
        }
        Err(Error::Server("it asked for data that the command does not have".to_owned()))
    }

    /// Reads one response; with its line if it ends a command.
    async fn response(&mut self) -> Result<(Response<'static>, String)> {
        loop {
            match Response::parse(&self.unread) {
                Ok((rest, response)) => {
                    let read = self.unread.len() - rest.len();
                    let response = response.into_owned();
                    let mut line = String::new();
                    if matches!(response, Response::Done { .. }) {
                        let text = String::from_utf8_lossy(&self.unread[..read]);
                        let text = text.split_once(' ').map_or(&*text, |(_, text)| text);
                        line = text.trim_end().to_owned();
                    }
                    self.unread.drain(..read);
                    return Ok((response, line));
                }
                Err(error) if !error.is_incomplete() || self.unread.len() > LARGEST => {
                    return Err(Error::Server("something that is not IMAP".to_owned()));
                }
                Err(_) => {}
            }
            self.unread.reserve(CHUNK);
            if self.stream.read_buf(&mut self.unread).await.map_err(Error::Broken)? == 0 {
                return Err(Error::Server("it hung up".to_owned()));
            }
        }
    }
}

impl Answer {
    pub fn succeeded(self) -> Result<Vec<Response<'static>>> {
        if self.status == Status::Ok { Ok(self.responses) } else { Err(Error::Server(self.line)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::serve;
    use super::*;

    #[tokio::test]
    async fn answers_split_at_any_place_are_read_and_refusals_are_errors() {
        let talk = [
            ("", "* OK hello\r\n"),
            (
                "P1 SELECT \"a \\\"b\\\"\"\r\n",
                "* 2 EXISTS\r\n* FLAGS (\\Seen)\r\nP1 OK [READ-WRITE] done\r\n",
            ),
            ("P2 UID SEARCH ALL\r\n", "* SEARCH 1 22\r\n* SEARCH 333\r\nP2 OK done\r\n"),
            (
                "P3 UID FETCH 1 (UID BODY[])\r\n",
                "* 1 FETCH (UID 1 BODY[] {9}\r\nP3 OK )\r\n)\r\nP3 OK done\r\n",
            ),
            ("P4 APPEND \"x\" (\\Seen) {2}\r\n", "+ ready\r\n"),
            ("hi\r\n", "P4 NO [TRYCREATE] no such folder\r\n"),
            ("P5 APPEND \"x\" () {2}\r\n", "P5 BAD too large\r\n"),
            ("P6 CREATE \"Entw&APw-rfe\"\r\n", "P6 OK done\r\n"),
            ("P7 UID SEARCH TEXT {7}\r\n", "* 3 EXISTS\r\n+ ready\r\n"),
            ("grüße FROM {2}\r\n", "+ ready\r\n"),
            ("ä\r\n", "* SEARCH 4\r\nP7 OK done\r\n"),
            ("P8 LOGOUT\r\n", "* BYE bye\r\nP8 OK done\r\n"),
        ];
        for piece in [1, 2, 3, 7, 1_000] {
            let (ours, theirs) = tokio::io::duplex(1_000);
            let talking = async {
                let mut imap = Imap::begin(Box::new(ours) as Box<dyn Stream>).await.unwrap();
                imap.select("a \"b\"").await.unwrap();
                assert_eq!(imap.search("ALL").await.unwrap(), [1, 22, 333]);
                let fetched = imap.run("UID FETCH 1 (UID BODY[])").await.unwrap();
                assert!(format!("{fetched:?}").contains("Uid(1)"), "{fetched:?}");
                let refused = imap.append("x", "\\Seen", b"hi").await.unwrap_err().to_string();
                assert!(refused.ends_with(": NO [TRYCREATE] no such folder"), "{refused}");
                let refused = imap.append("x", "", b"hi").await.unwrap_err().to_string();
                assert!(refused.ends_with(": BAD too large"), "{refused}");
                imap.create("Entwürfe").await.unwrap();
                let key = "TEXT {7}\r\ngrüße FROM {2}\r\nä";
                assert_eq!(imap.search(key).await.unwrap(), [4]);
                assert!(imap.create("a\r\nP9 LOGOUT").await.is_err(), "no second command");
                imap.log_out().await;
            };
            tokio::join!(talking, serve(theirs, piece, &talk));
        }
    }

    #[tokio::test]
    async fn a_server_that_hangs_up_or_talks_something_else_is_an_error() {
        for (sent, part) in
            [("* OK hel", "hung up"), ("", "hung up"), ("HTTP/1.1 400\r\n\r\n", "not IMAP")]
        {
            let (ours, mut theirs) = tokio::io::duplex(1_000);
            theirs.write_all(sent.as_bytes()).await.unwrap();
            drop(theirs);
            let error = Imap::begin(ours).await.err().unwrap().to_string();
            assert!(error.contains(part), "{sent}: {error}");
        }
    }
}
