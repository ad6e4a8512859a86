//! Reads the description, and asks the host of its base address for an answer of any kind.

use std::time::Duration;

use perihelion_openapi::Base;

use super::{Error, Options, Server};
use crate::Finding;

/// Longest wait for the host.
const LIMIT: Duration = Duration::from_secs(10);

/// Opens the description and reaches for the API's host.
pub async fn check(options: &Options) -> Result<Vec<Finding>, Error> {
    let server = Server::open(options)?;
    let api = server.api();
    let operations = &server.api().catalogue.operations;
    let path = options.spec.display();
    let read = Finding::Good(format!("{path} describes {} operations", operations.len()));
    let host = match operations.first().map(|operation| api.own_base(operation)) {
        None => return Ok(vec![read]),
        Some(Ok(base)) => reach(&base).await?,
        Some(Err(error)) => Finding::Odd(format!(
            "no base address is known, so each request has to bring one in its context: {error}; set --base-url"
        )),
    };
    Ok(vec![read, host])
}

/// Any answer will do: what the API says to a stranger at its root is its own affair.
async fn reach(base: &Base) -> Result<Finding, Error> {
    perihelion_settings::config::tls::install();
    let client = reqwest::Client::builder()
        .timeout(LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(Error::Client)?;
    Ok(match client.head(base.as_str()).send().await {
        Ok(_) => Finding::Good(format!("{} answers", base.as_str())),
        Err(error) => Finding::Bad(format!(
            "HttpError: {} gives no answer: {}; is --base-url right?",
            base.as_str(),
            cause(&error)
        )),
    })
}

/// Returns the innermost reason, which says more than the outermost.
fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
