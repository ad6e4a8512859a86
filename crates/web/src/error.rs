/// Why a page was not fetched or nothing was searched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not an http or https address: {0}")]
    NotAnAddress(String),
    /// The address leads into this machine or its network.
    #[error("the address is not public, and only public ones are fetched: {0}")]
    NotPublic(String),
    #[error("the address carries a name or password; give it without: {0}")]
    Credentials(String),
    #[error("the site's robots.txt does not allow this page to be fetched: {0}")]
    Robots(String),
    #[error("{address} answered with status {status}")]
    Status { address: String, status: u16 },
    #[error("{address} cannot be fetched: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("{address} gave no answer within {seconds} s")]
    Timeout { address: String, seconds: u64 },
    #[error("{address} takes longer than {seconds} s to make text of")]
    Unreadable { address: String, seconds: u64 },
    #[error("{address} redirects more than {most} times")]
    Redirects { address: String, most: usize },
    #[error("{address} is {media}, which cannot be read as text")]
    Media { address: String, media: String },
    #[error("{address} holds more than {most} bytes, and a document is read whole")]
    TooLarge { address: String, most: usize },
    #[error("{address} is a document that cannot be read: {reason}")]
    Document { address: String, reason: String },
    #[error("no search provider is configured: set --search-url, or PERIHELION_WEB_SEARCH_URL")]
    NoProvider,
    #[error("the search provider failed: {0}")]
    Search(String),
    #[error("no HTTP client can be made: {0}")]
    Client(#[source] reqwest::Error),
}
