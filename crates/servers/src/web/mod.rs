//! Searches the web and fetches pages: `perihelion mcp web`.
//!
//! Enter at [`Server::open`]. Invariant: only public addresses are fetched, decided at the connection. Always open
//! world: the text of a page is never an instruction. Deliberately absent: scripts, cookies, logins.

mod tools;

use std::sync::Arc;
use std::time::Duration;

use perihelion_documents::Parser;
use perihelion_ingest::parser;
use perihelion_web::{Addresses, Document, Limits, Provider, ReadDocument, Reading, Web, Wire};

pub use perihelion_web::Error;
pub use tools::Server;

/// Environment variables with the provider's address and key.
pub(crate) const SEARCH_URL: &str = "PERIHELION_WEB_SEARCH_URL";
pub(crate) const SEARCH_KEY: &str = "PERIHELION_WEB_SEARCH_KEY";

/// Options of `perihelion mcp web`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// URL of the search provider. The key comes from PERIHELION_WEB_SEARCH_KEY.
    #[arg(long, value_name = "URL", env = SEARCH_URL)]
    pub search_url: Option<String>,
    /// Protocol of the provider.
    #[arg(long, value_enum, default_value_t = WireName::Searxng)]
    pub search_wire: WireName,
    /// Private hosts (NAME or NAME:PORT) that can be fetched.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub allow_host: Vec<String>,
    /// Fetch pages even if the site's robots.txt disallows it.
    #[arg(long)]
    pub ignore_robots: bool,
    /// Maximum duration of a fetch in seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub timeout_sec: u32,
    /// Maximum length of a page in characters.
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u32).range(1_000..=2_000_000))]
    pub max_chars: u32,
    /// Minimum time between requests to one host in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(0..=60_000))]
    pub pause_ms: u32,
}

/// Name of a wire on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum WireName {
    Searxng,
    Brave,
    Tavily,
}

impl Options {
    pub(crate) fn open(&self) -> Result<Web, Error> {
        perihelion_settings::config::tls::install();
        let limits = Limits {
            time: Duration::from_secs(self.timeout_sec.into()),
            characters: self.max_chars as usize,
            pause: Duration::from_millis(self.pause_ms.into()),
            ..Limits::default()
        };
        let (wire, default) = match self.search_wire {
            WireName::Searxng => (Wire::Searxng, None),
            WireName::Brave => (Wire::Brave, Some("https://api.search.brave.com")),
            WireName::Tavily => (Wire::Tavily, Some("https://api.tavily.com")),
        };
        let key =
            std::env::var(SEARCH_KEY).ok().filter(|key| !key.trim().is_empty()).map(Into::into);
        let url = self.search_url.as_deref().filter(|url| !url.trim().is_empty()).or(default);
        let provider = url.map(|url| Provider::new(wire, url, key)).transpose()?;
        let addresses = Addresses::allowing(&self.allow_host);
        let web = Web::open(addresses, limits, provider, !self.ignore_robots)?;
        Ok(web.with_documents(Arc::new(Parsing(parser()))))
    }
}

/// Parses documents as the documents server does: by this program, in a separate process.
struct Parsing(Parser);

impl ReadDocument for Parsing {
    fn read<'a>(&'a self, name: &'a str, bytes: &'a [u8]) -> Reading<'a> {
        Box::pin(async move {
            let parsed = self.0.parse(name, bytes).await?;
            Ok(Document { title: parsed.title, text: parsed.text })
        })
    }
}
