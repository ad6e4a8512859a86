//! A site's rules for crawlers: its robots.txt, and a pause between two requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use url::Url;

use crate::robots::Robots;
use crate::{Error, clock};

const KEEP: Duration = Duration::from_secs(3_600);
/// Time before unavailable rules are requested again.
const KEEP_CLOSED: Duration = Duration::from_secs(60);
/// Maximum number of sites with cached rules.
const SITES: usize = 1_000;

#[derive(Clone)]
pub enum Rules {
    /// There are none.
    Free,
    Some(Arc<Robots>),
    /// They are unavailable at present, which counts as a no.
    Closed,
}

impl Rules {
    pub fn read(status: u16, text: &[u8]) -> Self {
        match status {
            200..300 => Self::Some(Arc::new(Robots::read(&String::from_utf8_lossy(text)))),
            500.. => Self::Closed,
            _ => Self::Free,
        }
    }

    /// Rejects an address that they do not allow.
    ///
    /// # Errors
    /// [`Error::Robots`], [`Error::NoRobots`].
    pub fn check(&self, url: &Url) -> Result<(), Error> {
        match self {
            Self::Some(robots) if !robots.allow(url) => Err(Error::Robots(url.to_string())),
            Self::Closed => Err(Error::NoRobots(url.to_string())),
            Self::Free | Self::Some(_) => Ok(()),
        }
    }

    fn delay(&self) -> Duration {
        let Self::Some(robots) = self else { return Duration::ZERO };
        // A site that asks for more than ten seconds would stop everything.
        robots.delay().min(Duration::from_secs(10))
    }
}

#[derive(Default)]
pub struct Sites {
    rules: Mutex<HashMap<String, (Instant, Rules)>>,
    turns: Mutex<HashMap<String, Instant>>,
}

impl Sites {
    pub fn rules(&self, site: &str) -> Option<Rules> {
        let rules = self.rules.lock();
        let (read, found) = rules.get(site)?;
        let keep = if matches!(found, Rules::Closed) { KEEP_CLOSED } else { KEEP };
        (clock::monotonic().saturating_duration_since(*read) < keep).then(|| found.clone())
    }

    pub fn keep(&self, site: &str, found: Rules) {
        let mut rules = self.rules.lock();
        if rules.len() >= SITES {
            rules.clear();
        }
        rules.insert(site.to_owned(), (clock::monotonic(), found));
    }

    /// Waits for a request's turn, and returns how long; turns of one site are a pause apart.
    pub async fn turn(&self, site: &str, pause: Duration, rules: &Rules) -> Duration {
        let pause = pause.max(rules.delay());
        let wait = {
            let mut turns = self.turns.lock();
            if turns.len() >= SITES {
                turns.clear();
            }
            let now = clock::monotonic();
            let at = turns.get(site).map_or(now, |next| (*next).max(now));
            turns.insert(site.to_owned(), at + pause);
            at.saturating_duration_since(now)
        };
        if !wait.is_zero() {
            clock::sleep(wait).await;
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.07
    #[test]
    fn rules_that_cannot_be_read_are_asked_for_again_after_a_minute() {
        let sites = Sites::default();
        sites.keep("closed", Rules::Closed);
        sites.keep("free", Rules::Free);
        let is_known = |site: &str| sites.rules(site).is_some();
        assert_eq!(["closed", "free"].map(is_known), [true, true]);
        sites.rules.lock().values_mut().for_each(|(read, _)| *read -= KEEP_CLOSED);
        assert_eq!(["closed", "free"].map(is_known), [false, true]);
    }
}
