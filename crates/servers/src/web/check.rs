//! Asks the search provider for something, where that costs nothing.

use perihelion_web::Kind;

use super::{Error, Options, SEARCH_KEY, SEARCH_URL, WireName};
use crate::Finding;

/// Opens the web and tries the search.
pub async fn check(options: &Options) -> Result<Vec<Finding>, Error> {
    let web = options.open()?;
    let has_url = options.search_url.as_deref().is_some_and(|url| !url.trim().is_empty());
    let has_key = std::env::var(SEARCH_KEY).is_ok_and(|key| !key.trim().is_empty());
    let finding = match options.search_wire {
        WireName::Searxng if !has_url => Finding::Odd(format!(
            "ConfigurationError: no search provider is configured, so only named pages are read; set {SEARCH_URL} or --search-url"
        )),
        WireName::Searxng => match web.search("perihelion", Kind::Basic, 1).await {
            Ok(_) => Finding::Good("the search provider answers".to_owned()),
            Err(error) => Finding::bad(&error),
        },
        WireName::Brave | WireName::Tavily if !has_key => Finding::Bad(format!(
            "ConfigurationError: the search provider wants a key; set {SEARCH_KEY}"
        )),
        WireName::Brave | WireName::Tavily => Finding::Good(
            "the search provider has a key; it was not asked, since each search is paid".to_owned(),
        ),
    };
    Ok(vec![finding])
}
