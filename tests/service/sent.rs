//! The statements that a server sends to Postgres, as the protocol between them has them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::served::Served;

/// What is recorded where a connection is tested, which is a round trip without a statement.
pub const TEST: &str = "(test of a connection)";

/// The code of a request for encryption, in place of a version.
const ENCRYPTION: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// What was sent, and how much came back.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    pub statements: Vec<String>,
    /// Bytes of the answers.
    pub received: usize,
}

#[derive(Clone, Default)]
pub struct Record(Arc<Mutex<Sent>>);

impl Record {
    /// Serves on Postgres, and records what the server sends.
    pub async fn of_server() -> (Served, Self) {
        let record = Self::default();
        (Served::recorded(&record).await, record)
    }

    /// Returns what was recorded since the last call.
    pub fn take(&self) -> Sent {
        std::mem::take(&mut *self.0.lock())
    }

    /// Returns the URL of a proxy before a database, which ends with the async runtime that it was started in.
    pub async fn before(&self, url: &str) -> String {
        let (credentials, rest) = url.split_once('@').unwrap();
        let (address, database) = rest.split_once('/').unwrap();
        let address = address.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let record = self.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&address).await.unwrap();
                let record = record.clone();
                tokio::spawn(async move { record.carry(client, server).await });
            }
        });
        format!("{credentials}@127.0.0.1:{port}/{database}")
    }

    /// Carries bytes both ways until one side closes.
    async fn carry(&self, mut client: TcpStream, mut server: TcpStream) {
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let mut connection = Connection::default();
        let mut up = vec![0; 64 << 10];
        let mut down = vec![0; 64 << 10];
        loop {
            tokio::select! {
                read = client.read(&mut up) => {
                    let Ok(count @ 1..) = read else { return };
                    connection.bytes.extend_from_slice(&up[..count]);
                    while let Some(statement) = connection.next() {
                        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
                        self.0.lock().statements.extend(statement.map(words));
                    }
                    if server.write_all(&up[..count]).await.is_err() {
                        return;
                    }
                }
                read = server.read(&mut down) => {
                    let Ok(count @ 1..) = read else { return };
                    self.0.lock().received += count;
                    if client.write_all(&down[..count]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

#[derive(Default)]
struct Connection {
    bytes: Vec<u8>,
    /// Whether its first message has passed, which has no type.
    has_begun: bool,
    /// The texts of prepared statements, by their names.
    prepared: HashMap<Vec<u8>, String>,
    /// Whether anything was sent since the last synchronization.
    is_used: bool,
}

impl Connection {
    /// Reads the next whole message; returns the statement that it executes, if any.
    fn next(&mut self) -> Option<Option<String>> {
        let header = usize::from(self.has_begun);
        let length: [u8; 4] = self.bytes.get(header..header + 4)?.try_into().unwrap();
        let end = header + u32::from_be_bytes(length) as usize;
        if self.bytes.len() < end {
            return None;
        }
        let message: Vec<u8> = self.bytes.drain(..end).collect();
        let body = &message[header + 4..];
        if !self.has_begun {
            self.has_begun = body[..4] != ENCRYPTION;
            return Some(None);
        }
        let mut texts = body.split(|byte| *byte == 0);
        let mut text = || texts.next().unwrap_or_default().to_vec();
        let was_used = std::mem::replace(&mut self.is_used, message[0] != b'S');
        Some(match message[0] {
            b'P' => {
                let name = text();
                self.prepared.insert(name, String::from_utf8(text()).unwrap());
                None
            }
            b'B' => {
                let _portal = text();
                self.prepared.get(&text()).cloned()
            }
            b'Q' => Some(String::from_utf8(text()).unwrap()),
            b'S' if !was_used => Some(TEST.to_owned()),
            _ => None,
        })
    }
}
