//! Fetches a page: public, allowed, in turn, within bounds.

use std::sync::Arc;

use perihelion_http::reach::{cause, unpacked};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use url::Url;

use crate::cache::Cache;
use crate::polite::{Rules, Sites};
use crate::robots::AGENT;
use crate::search::Provider;
use crate::{Addresses, Error, Hit, Kind, Limits, Page, ReadDocument, clock, document, page};

const REDIRECTS: usize = 8;
/// Most bytes of a document, which is read whole or not at all.
const DOCUMENT: usize = 32 << 20;
/// Most bytes of a robots.txt, as its standard asks for.
const ROBOTS: usize = 512 << 10;

pub struct Web {
    client: reqwest::Client,
    addresses: Addresses,
    limits: Limits,
    provider: Option<Provider>,
    obeys_robots: bool,
    documents: Option<Arc<dyn ReadDocument>>,
    sites: Sites,
    cache: Cache,
}

impl Web {
    /// Opens it; the process's TLS provider must be installed.
    ///
    /// # Errors
    /// [`Error::Client`] if no client can be made.
    pub fn open(
        addresses: Addresses,
        limits: Limits,
        provider: Option<Provider>,
        obeys_robots: bool,
    ) -> Result<Self, Error> {
        let client = reqwest::Client::builder()
            // Decided at the connection: a name that was public a moment ago need not be so now.
            .dns_resolver(Arc::new(addresses.clone()))
            // A proxy would connect without this check.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(limits.time)
            .user_agent(format!(
                "{AGENT}/{} (+https://crates.io/crates/perihelion)",
                env!("CARGO_PKG_VERSION")
            ))
            .build()
            .map_err(Error::Client)?;
        Ok(Self {
            client,
            addresses,
            limits,
            provider,
            obeys_robots,
            documents: None,
            sites: Sites::default(),
            cache: Cache::default(),
        })
    }

    /// Has documents that are no pages parsed; without, they are refused.
    #[must_use]
    pub fn with_documents(self, documents: Arc<dyn ReadDocument>) -> Self {
        Self { documents: Some(documents), ..self }
    }

    /// Searches through the provider.
    ///
    /// # Errors
    /// [`Error::NoProvider`] if none is configured, [`Error::Search`] if it fails.
    pub async fn search(&self, query: &str, kind: Kind, limit: usize) -> Result<Vec<Hit>, Error> {
        let provider = self.provider.as_ref().ok_or(Error::NoProvider)?;
        provider.search(query, kind, limit).await
    }

    /// Fetches a page and reads it.
    ///
    /// # Errors
    /// As [`Addresses::check`] for the address and each redirect; [`Error::Robots`], [`Error::NoRobots`], [`Error::Status`], [`Error::Timeout`],
    /// [`Error::Unreachable`], [`Error::Redirects`] and [`Error::Media`] on the way.
    pub async fn fetch(&self, address: &str) -> Result<Page, Error> {
        let mut url = self.addresses.check(address)?;
        let asked = url.to_string();
        if let Some(page) = self.cache.get(&asked) {
            return Ok(page);
        }
        let mut deadline = clock::monotonic() + self.limits.time;
        for _ in 0..=REDIRECTS {
            let site = url.origin().ascii_serialization();
            let rules = tokio::time::timeout_at(deadline.into(), self.rules(&url, &site)).await;
            let late = |_| Error::Timeout {
                address: url.to_string(),
                seconds: self.limits.time.as_secs(),
            };
            let rules = rules.map_err(late)??;
            rules.check(&url)?;
            deadline += self.sites.turn(&site, self.limits.pause, &rules).await;
            let left = deadline.saturating_duration_since(clock::monotonic());
            let sent = self.client.get(url.clone()).timeout(left).send().await;
            let answer = sent.map_err(|error| self.failed(&url, &error))?;
            if let Some(target) = redirection(&answer) {
                let next = url.join(target).map_err(|_| Error::NotAnAddress(target.to_owned()))?;
                url = self.addresses.check(next.as_str())?;
                continue;
            }
            let page = self.read(&url, answer).await?;
            self.cache.put(&asked, &page);
            return Ok(page);
        }
        Err(Error::Redirects { address: asked, most: REDIRECTS })
    }

    async fn read(&self, url: &Url, mut answer: reqwest::Response) -> Result<Page, Error> {
        let address = url.to_string();
        if !answer.status().is_success() {
            return Err(Error::Status { address, status: answer.status().as_u16() });
        }
        let media = answer.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default().to_ascii_lowercase();
        let is_text =
            ["text/", "json", "xml", "javascript"].iter().any(|kind| media.contains(kind))
                || media.is_empty();
        // First, because the content types of office documents contain `xml`.
        let name = document::name(url, &media);
        if name.is_some() || !is_text {
            return match name.zip(self.documents.as_ref()) {
                Some((name, documents)) => {
                    self.document(url, &mut answer, &name, documents.as_ref()).await
                }
                None => Err(Error::Media { address, media }),
            };
        }
        let read = unpacked(&mut answer, self.limits.bytes).await;
        let (bytes, is_cut) = read.map_err(|error| self.failed(url, &error))?;
        let parameter = media.split(';').find_map(|part| part.trim().strip_prefix("charset="));
        let charset = parameter.map(|name| name.trim_matches(['"', '\'', ' ']));
        let text = perihelion_mime::decoded_page(&bytes, charset);
        let limits = self.limits;
        let here = url.clone();
        // Reading a large page takes long enough to hold others up.
        let reading =
            tokio::task::spawn_blocking(move || page::read(&here, &media, &text, &limits));
        let mut page = match tokio::time::timeout(limits.time, reading).await {
            Ok(Ok(page)) => page,
            Ok(Err(_)) => {
                return Err(Error::Unreachable { address, reason: "it cannot be read".to_owned() });
            }
            Err(_) => return Err(Error::Unreadable { address, seconds: limits.time.as_secs() }),
        };
        page.truncated |= is_cut;
        Ok(page)
    }

    async fn document(
        &self,
        url: &Url,
        answer: &mut reqwest::Response,
        name: &str,
        documents: &dyn ReadDocument,
    ) -> Result<Page, Error> {
        let address = url.to_string();
        let read = unpacked(answer, DOCUMENT).await;
        let (bytes, is_cut) = read.map_err(|error| self.failed(url, &error))?;
        if is_cut {
            return Err(Error::TooLarge { address, most: DOCUMENT });
        }
        match documents.read(name, &bytes).await {
            Ok(document) => Ok(page::of_document(url, document, &self.limits)),
            Err(reason) => Err(Error::Document { address, reason }),
        }
    }

    async fn rules(&self, url: &Url, site: &str) -> Result<Rules, Error> {
        if !self.obeys_robots {
            return Ok(Rules::Free);
        }
        if let Some(rules) = self.sites.rules(site) {
            return Ok(rules);
        }
        // A site that cannot be reached at all is that, and not one that refuses.
        let rules = self.read_rules(url).await.map_err(|error| self.failed(url, &error))?;
        self.sites.keep(site, rules.clone());
        Ok(rules)
    }

    async fn read_rules(&self, url: &Url) -> Result<Rules, reqwest::Error> {
        let Ok(mut at) = url.join("/robots.txt") else { return Ok(Rules::Free) };
        for _ in 0..=REDIRECTS {
            let mut answer = match self.client.get(at.clone()).send().await {
                Ok(answer) => answer,
                Err(error) if error.is_connect() => return Err(error),
                Err(_) => return Ok(Rules::Closed),
            };
            if let Some(target) = redirection(&answer) {
                let next = at.join(target).ok();
                let next = next.and_then(|next| self.addresses.check(next.as_str()).ok());
                let Some(next) = next else { return Ok(Rules::Free) };
                at = next;
                continue;
            }
            let status = answer.status().as_u16();
            return Ok(match unpacked(&mut answer, ROBOTS).await {
                Ok((text, _)) => Rules::read(status, &text),
                Err(_) => Rules::Closed,
            });
        }
        Ok(Rules::Free)
    }

    fn failed(&self, url: &Url, error: &reqwest::Error) -> Error {
        let address = url.to_string();
        if error.is_timeout() {
            return Error::Timeout { address, seconds: self.limits.time.as_secs() };
        }
        let reason = std::error::Error::source(error).map(cause);
        let reason = reason.unwrap_or_else(|| "it cannot be reached".to_owned());
        if reason.contains("no public address") {
            Error::NotPublic(address)
        } else {
            Error::Unreachable { address, reason }
        }
    }
}

fn redirection(answer: &reqwest::Response) -> Option<&str> {
    let target = answer.headers().get(LOCATION)?.to_str().ok()?;
    answer.status().is_redirection().then_some(target)
}
