//! A TCP proxy before a Postgres server that cuts connections: before a statement arrives, or before its reply does.

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

/// Returns the URL of a proxy before a database; each time something passes, `cuts` says whether it is lost.
///
/// It is told how many pieces have passed on the same connection before.
///
/// A cut closes both connections. The proxy ends with the async runtime it was started in.
pub async fn before(url: &str, cuts: impl Fn(Way, u64) -> bool + Send + Sync + 'static) -> String {
    let (credentials, rest) = url.split_once('@').unwrap();
    let (address, database) = rest.split_once('/').unwrap();
    let (address, cuts) = (address.to_owned(), Arc::new(cuts));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (address, cuts) = (address.clone(), Arc::clone(&cuts));
            tokio::spawn(async move {
                // A server that is away refuses; so does the proxy, by closing.
                if let Ok(server) = TcpStream::connect(&address).await {
                    carry(client, server, &*cuts).await;
                }
            });
        }
    });
    format!("{credentials}@127.0.0.1:{port}/{database}")
}

/// Carries bytes both ways until one side closes or a cut.
async fn carry(mut client: TcpStream, mut server: TcpStream, cuts: &(dyn Fn(Way, u64) -> bool + Sync)) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut up, mut down) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    for passed in 0.. {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                if cuts(Way::Statement, passed) || server.write_all(&up[..count]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                if cuts(Way::Reply, passed) || client.write_all(&down[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
