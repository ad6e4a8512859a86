//! The requirements of a bundled server, checked without serving: `perihelion mcp --check NAME`.

use std::time::Duration;

use perihelion_http::reach::cause;
use perihelion_sandbox::{Program, Python, Tier};
use perihelion_web::Kind;

use super::web::{SEARCH_KEY, SEARCH_URL, WireName};
use super::{Bundled, Cause, api, mail, python, web};

/// Longest wait for the host of an API.
const REACHING: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "status", content = "message")]
pub enum Finding {
    #[serde(rename = "ok")]
    Good(String),
    /// It works, but not all of it.
    #[serde(rename = "warning")]
    Odd(String),
    #[serde(rename = "error")]
    Bad(String),
}

impl Finding {
    /// Writes it as a line, which [`Finding::read`] reads.
    pub fn line(&self) -> String {
        let (mark, text) = match self {
            Self::Good(text) => ('✓', text),
            Self::Odd(text) => ('!', text),
            Self::Bad(text) => ('✗', text),
        };
        format!("{mark} {}", text.replace(['\n', '\r'], " "))
    }

    pub fn read(line: &str) -> Option<Self> {
        let (mark, text) = line.split_once(' ')?;
        match mark {
            "✓" => Some(Self::Good(text.to_owned())),
            "!" => Some(Self::Odd(text.to_owned())),
            "✗" => Some(Self::Bad(text.to_owned())),
            _ => None,
        }
    }

    pub fn is_bad(&self) -> bool {
        matches!(self, Self::Bad(_))
    }

    pub fn map(self, words: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Good(text) => Self::Good(words(text)),
            Self::Odd(text) => Self::Odd(words(text)),
            Self::Bad(text) => Self::Bad(words(text)),
        }
    }

    fn bad(error: &dyn std::fmt::Display) -> Self {
        Self::Bad(error.to_string())
    }
}

impl Bundled {
    /// Names of the servers that need more than to be opened, which a scan does.
    pub const CHECKED: [&str; 4] = ["python", "api", "web", "mail"];

    /// Checks the requirements of the server: what it opens can be opened, and what it needs besides works.
    pub async fn check(self) -> Vec<Finding> {
        let found = match &self {
            Self::Python(options) => of_python(options).await,
            Self::Api(options) => of_api(options).await,
            Self::Web(options) => of_web(options).await,
            Self::Mail(options) => of_mail(options).await,
            _ => self.open(false).await.map(|opened| {
                let started = |_| Finding::Good("it can be started".to_owned());
                opened.into_iter().map(started).collect()
            }),
        };
        found.unwrap_or_else(|error| vec![Finding::bad(&error)])
    }
}

async fn of_python(options: &python::Options) -> Result<Vec<Finding>, Cause> {
    let tier = options.tier();
    let limits = options.limits();
    let packages = options.site_packages.clone();
    let name = match tier {
        Tier::Wasm => "the bundled Python",
        Tier::System => "the system's Python under bubblewrap",
    };
    let program = Program { code: "6 * 7".to_owned(), ..Program::default() };
    let outcome = tokio::task::spawn_blocking(move || -> Result<_, perihelion_sandbox::Error> {
        Python::open(tier, &packages)?.run(&program, &limits)
    })
    .await??;
    Ok(vec![match outcome.error {
        None => Finding::Good(format!("{name} runs programs")),
        Some(error) => Finding::Bad(format!("{name} fails at 6 * 7: {}", error.message)),
    }])
}

/// Reads the description, and asks the host of its base address for an answer of any kind.
async fn of_api(options: &api::Options) -> Result<Vec<Finding>, Cause> {
    let api = api::Api::open(options)?;
    let operations = &api.catalogue.operations;
    let path = options.spec.display();
    let read = Finding::Good(format!("{path} describes {} operations", operations.len()));
    let host = match operations.first().map(|operation| api.own_base(operation)) {
        None => return Ok(vec![read]),
        Some(Ok(base)) => reach(base.as_str()).await?,
        Some(Err(error)) => Finding::Odd(format!(
            "no base address is known, so each request has to bring one in its context: {error}; set --base-url"
        )),
    };
    Ok(vec![read, host])
}

/// Any answer is enough: the API's response at its root to an unauthenticated caller does not matter.
async fn reach(base: &str) -> Result<Finding, api::Error> {
    perihelion_settings::config::tls::install();
    let client = reqwest::Client::builder()
        .timeout(REACHING)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(api::Error::Client)?;
    let Err(error) = client.head(base).send().await else {
        return Ok(Finding::Good(format!("{base} answers")));
    };
    let cause = cause(&error);
    Ok(Finding::Bad(format!("HttpError: {base} gives no answer: {cause}; is --base-url right?")))
}

/// Sends the search provider a request, if that is free.
async fn of_web(options: &web::Options) -> Result<Vec<Finding>, Cause> {
    let web = options.open()?;
    let is_set = |text: &str| !text.trim().is_empty();
    let has_url = options.search_url.as_deref().is_some_and(is_set);
    let has_key = std::env::var(SEARCH_KEY).is_ok_and(|key| is_set(&key));
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

/// Logs in to the mail store and the outgoing server, and lists the folders.
async fn of_mail(options: &mail::Options) -> Result<Vec<Finding>, Cause> {
    let mailbox = options.open().await?;
    let login = Finding::Good(format!("{} takes the login", mailbox.server()));
    let folders = match mailbox.special_folders().await {
        Ok((Some(sent), Some(drafts))) => {
            Finding::Good(format!("sent mail is in {sent}, drafts are in {drafts}"))
        }
        Ok((sent, drafts)) => {
            let missing = [("Sent", sent), ("Drafts", drafts)].into_iter();
            let missing = missing.filter_map(|(name, found)| found.is_none().then_some(name));
            let missing = missing.collect::<Vec<_>>().join(" and ");
            Finding::Odd(format!("there is no folder for {missing}; it is made when it is needed"))
        }
        Err(error) => Finding::bad(&error),
    };
    let outgoing = match mailbox.check_outgoing().await {
        Ok(server) => Finding::Good(format!("{server} takes the login")),
        Err(error) => Finding::bad(&error),
    };
    Ok(vec![login, folders, outgoing])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_read_back_from_its_line() {
        for finding in
            [Finding::Good("a b".into()), Finding::Odd("c".into()), Finding::Bad("d: e".into())]
        {
            assert_eq!(Finding::read(&finding.line()), Some(finding));
        }
        assert_eq!(Finding::read("else"), None);
    }
}
