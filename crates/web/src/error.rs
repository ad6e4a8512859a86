/// Why a page was not fetched or a search failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not an http or https address: {0}")]
    NotAnAddress(String),
    /// The address leads into this machine or its network.
    #[error("only public addresses are fetched: {0}")]
    NotPublic(String),
    #[error("the address contains a user name or password; remove it: {0}")]
    Credentials(String),
    #[error("the site's robots.txt does not allow this page: {0}")]
    Robots(String),
    #[error(
        "the site's robots.txt cannot be read, so the page is not fetched; try again later: {0}"
    )]
    NoRobots(String),
    #[error("{address} answered with status {status}")]
    Status { address: String, status: u16 },
    #[error("cannot fetch {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("{address} did not answer within {seconds} s")]
    Timeout { address: String, seconds: u64 },
    #[error("extracting the text of {address} takes longer than {seconds} s")]
    Unreadable { address: String, seconds: u64 },
    #[error("{address} redirects more than {most} times")]
    Redirects { address: String, most: usize },
    #[error("{address} has the type {media}, which is not text")]
    Media { address: String, media: String },
    #[error("{address} is a document of more than {most} bytes")]
    TooLarge { address: String, most: usize },
    #[error("cannot read the document {address}: {reason}")]
    Document {
        address: String,
        #[source]
        reason: crate::document::Cause,
    },
    #[error("no search provider is configured: set --search-url, or PERIHELION_WEB_SEARCH_URL")]
    NoProvider,
    #[error("the search provider failed: {0}")]
    Search(#[source] crate::document::Cause),
    #[error("cannot create the HTTP client: {0}")]
    Client(#[source] reqwest::Error),
}
