//! Search through a provider, by one of three wires: SearXNG's JSON, Brave's, Tavily's.

use std::time::Duration;

use perihelion_http::reach::unpacked;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::Error;

/// Longest search.
const LIMIT: Duration = Duration::from_secs(20);
/// Most bytes of an answer.
const ANSWER: usize = 4 << 20;
/// Most characters of a hit's text.
const SNIPPET: usize = 1_000;

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Pages.
    #[default]
    Basic,
    /// News.
    News,
    /// Pages, more of them and with more text.
    Deep,
}

/// One page that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Hit {
    pub title: String,
    pub url: String,
    /// The provider's words about it.
    pub snippet: String,
    /// When it was published, as far as the provider says.
    pub published: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    #[default]
    Searxng,
    Brave,
    Tavily,
}

pub struct Provider {
    wire: Wire,
    url: Url,
    key: Option<SecretString>,
    client: reqwest::Client,
}

impl Provider {
    /// Takes a provider.
    ///
    /// # Errors
    /// [`Error::NotAnAddress`] for an invalid address, [`Error::Client`] if no client can be made.
    pub fn new(wire: Wire, url: &str, key: Option<SecretString>) -> Result<Self, Error> {
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = parsed.ok_or_else(|| Error::NotAnAddress(url.to_owned()))?;
        let client = reqwest::Client::builder().timeout(LIMIT);
        let client = client.redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self { wire, url, key, client: client.map_err(Error::Client)? })
    }

    /// Searches.
    ///
    /// # Errors
    /// [`Error::Search`] with the provider's status or what failed.
    pub async fn search(&self, query: &str, kind: Kind, limit: usize) -> Result<Vec<Hit>, Error> {
        let failed = |error: reqwest::Error| Error::Search(error.without_url().into());
        let mut answer = self.request(query, kind, limit).send().await.map_err(failed)?;
        let status = answer.status();
        if !status.is_success() {
            let hint = match (self.wire, status.as_u16()) {
                (Wire::Searxng, 403) => "; its settings must list json under search.formats",
                (_, 401 | 403) => "; its key is missing or refused: set PERIHELION_WEB_SEARCH_KEY",
                (_, 429) => "; it asks for fewer searches",
                _ => "",
            };
            return Err(Error::Search(format!("status {}{hint}", status.as_u16()).into()));
        }
        let (bytes, _) = unpacked(&mut answer, ANSWER).await.map_err(failed)?;
        let body: Value = serde_json::from_slice(&bytes)
            .map_err(|_| Error::Search("its answer is no JSON".into()))?;
        let hits = self.hits(&body, kind);
        if hits.is_empty()
            && let Some(dead) = unresponsive(&body)
        {
            return Err(Error::Search(format!("its engines gave no answer: {dead}").into()));
        }
        Ok(hits.into_iter().take(limit).collect())
    }

    fn request(&self, query: &str, kind: Kind, limit: usize) -> reqwest::RequestBuilder {
        let key = self.key.as_ref().map(|key| key.expose_secret().to_owned());
        let mut url = self.url.clone();
        let topic = if kind == Kind::News { "news" } else { "general" };
        if !url.path().ends_with("/search") {
            let end = match (self.wire, kind) {
                (Wire::Brave, Kind::News) => "res/v1/news/search",
                (Wire::Brave, _) => "res/v1/web/search",
                (Wire::Searxng | Wire::Tavily, _) => "search",
            };
            let path = format!("{}/{end}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        match self.wire {
            Wire::Searxng => {
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("format", "json")
                    .append_pair("categories", topic);
                let request = self.client.get(url);
                match key {
                    Some(key) => request.bearer_auth(key),
                    None => request,
                }
            }
            Wire::Brave => {
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("count", &limit.min(20).to_string());
                if kind == Kind::Deep {
                    url.query_pairs_mut().append_pair("extra_snippets", "true");
                }
                self.client
                    .get(url)
                    .header("accept", "application/json")
                    .header("x-subscription-token", key.unwrap_or_default())
            }
            Wire::Tavily => {
                let depth = if kind == Kind::Deep { "advanced" } else { "basic" };
                let body = json!({"query": query, "topic": topic, "search_depth": depth, "max_results": limit.min(20)});
                self.client.post(url).bearer_auth(key.unwrap_or_default()).json(&body)
            }
        }
    }

    fn hits(&self, body: &Value, kind: Kind) -> Vec<Hit> {
        let list = match (self.wire, kind) {
            (Wire::Brave, Kind::Basic | Kind::Deep) => &body["web"]["results"],
            _ => &body["results"],
        };
        list.as_array().into_iter().flatten().filter_map(hit).collect()
    }
}

fn hit(value: &Value) -> Option<Hit> {
    let text = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| value.get(*key)?.as_str())
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let url =
        text(&["url"]).filter(|url| url.starts_with("http://") || url.starts_with("https://"))?;
    let mut snippet = text(&["content", "description"]).unwrap_or_default().to_owned();
    let more = value["extra_snippets"].as_array().into_iter().flatten();
    snippet.extend(more.filter_map(Value::as_str).flat_map(|extra| ["\n", extra]));
    Some(Hit {
        title: text(&["title"]).unwrap_or(url).to_owned(),
        url: url.to_owned(),
        snippet: snippet.chars().take(SNIPPET).collect(),
        published: text(&["publishedDate", "published_date", "page_age", "age"]).map(str::to_owned),
    })
}

/// Names the engines that a SearXNG could not reach, which it reports with an empty list.
fn unresponsive(body: &Value) -> Option<String> {
    let list = body.get("unresponsive_engines")?.as_array().filter(|list| !list.is_empty())?;
    let names = list.iter().filter_map(|engine| engine.get(0).or(Some(engine))?.as_str());
    Some(names.collect::<Vec<_>>().join(", "))
}
