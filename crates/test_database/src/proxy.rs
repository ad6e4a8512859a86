//! A TCP proxy before a Postgres server that cuts connections, or lets them hang: before a statement arrives, or before
//! its reply does.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What is on its way through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the server, which has not seen it.
    Statement,
    /// From the server, which has carried the statement out.
    Reply,
}

/// A piece of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub way: Way,
    /// Pieces that passed on the same connection before.
    pub passed: u64,
    /// Whether it belongs to a statement that commits a step.
    pub is_commit: bool,
}

/// What becomes of a connection on which something is lost.
#[derive(Clone, Copy)]
enum Loss {
    /// Both sides hear that it is closed.
    Cut,
    /// Nobody hears anything any more, as where a network swallows packets.
    Silence,
}

/// What stands in the text of every statement that commits steps, and in no other.
const COMMIT: &[u8] = b"INSERT INTO step";

/// How sqlx begins the names of its prepared statements.
const NAME: &[u8] = b"sqlx_s_";

/// Returns the URL of a proxy before a database; each time something passes, `cuts` says whether it is lost.
///
/// A cut closes both connections. The proxy ends with the async runtime it was started in.
pub async fn before(url: &str, cuts: impl Fn(Piece) -> bool + Send + Sync + 'static) -> String {
    begin(url, Loss::Cut, cuts).await
}

/// As [`before`], but what `swallows` picks is lost without a word, and all that follows on its connection.
pub async fn silent_before(
    url: &str,
    swallows: impl Fn(Piece) -> bool + Send + Sync + 'static,
) -> String {
    begin(url, Loss::Silence, swallows).await
}

async fn begin(
    url: &str,
    loss: Loss,
    cuts: impl Fn(Piece) -> bool + Send + Sync + 'static,
) -> String {
    let (credentials, rest) = url.split_once('@').unwrap();
    let (address, database) = rest.split_once('/').unwrap();
    let address = address.to_owned();
    let cuts = Arc::new(cuts);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let address = address.clone();
            let cuts = Arc::clone(&cuts);
            tokio::spawn(async move {
                // A server that is away refuses; so does the proxy, by closing.
                if let Ok(server) = TcpStream::connect(&address).await {
                    carry(client, server, loss, &*cuts).await;
                }
            });
        }
    });
    format!("{credentials}@127.0.0.1:{port}/{database}")
}

/// Carries bytes both ways until one side closes or something is lost.
async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    loss: Loss,
    cuts: &(dyn Fn(Piece) -> bool + Sync),
) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let mut up = vec![0; 64 << 10];
    let mut down = vec![0; 64 << 10];
    let mut commits = Commits::default();
    let mut is_commit = false;
    for passed in 0.. {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                is_commit = commits.are_in(&up[..count]);
                if cuts(Piece { way: Way::Statement, passed, is_commit }) {
                    return lose(loss).await;
                }
                if server.write_all(&up[..count]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                if cuts(Piece { way: Way::Reply, passed, is_commit }) {
                    return lose(loss).await;
                }
                if client.write_all(&down[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn lose(loss: Loss) {
    match loss {
        Loss::Cut => {}
        Loss::Silence => std::future::pending().await,
    }
}

/// Knows the names under which a connection has prepared statements that commit.
#[derive(Default)]
struct Commits(Vec<Vec<u8>>);

impl Commits {
    /// Returns whether some bytes of the client execute such a statement.
    ///
    /// A Parse message has the name, a zero, and the text; a Bind message has the name between zeros.
    fn are_in(&mut self, bytes: &[u8]) -> bool {
        if let Some(at) = find(bytes, COMMIT) {
            let start = bytes[..at].windows(NAME.len()).rposition(|window| window == NAME);
            let name = start.and_then(|start| bytes[start..].split(|byte| *byte == 0).next());
            self.0.extend(name.map(|name| [&[0], name, &[0]].concat()));
            return false;
        }
        self.0.iter().any(|name| find(bytes, name).is_some())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
