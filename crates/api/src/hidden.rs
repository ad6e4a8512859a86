//! Answers to clients, without the addresses of the models: those are the operator's business.
//!
//! Enter at [`ModelAddresses::before`], which wraps all routes, and at [`ModelAddresses::hidden`] for other messages.
//! Invariant: a failure of a model never shows a client the model's address. Deliberately absent: the files of an
//! export, which are proven by a digest, and addresses in any other text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::State;
use axum::middleware::map_response_with_state;
use axum::response::Response;
use futures::{AsyncBufReadExt as _, Stream, TryStreamExt as _};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

use perihelion_settings::config::{Models, Roles};

const HIDDEN: &str = "(address hidden)";

/// Comes before the address in every failure of a model.
const NAMED: &str = "model endpoint http";

/// The addresses of all model endpoints, longer ones first; cheap to clone.
#[derive(Clone)]
pub(crate) struct ModelAddresses(Arc<[String]>);

impl ModelAddresses {
    pub(crate) fn of(models: &Models) -> Self {
        let of_roles = Roles::NAMES.iter().map(|role| models.for_role(role));
        let of_agents = models.agents.keys().map(|agent| models.for_agent(agent));
        let urls = of_roles.chain(of_agents).filter_map(|one| one.url);
        let urls: BTreeSet<String> = urls.map(|url| url.trim_end_matches('/').to_owned()).collect();
        Self(urls.into_iter().rev().collect())
    }

    pub(crate) fn before(self, router: Router) -> Router {
        router.layer(map_response_with_state(self, in_response))
    }

    /// Returns a text without the addresses of failed models; in JSON, only the failing texts change.
    pub(crate) fn hidden<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut written = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(NAMED) {
            let start = rest
                .get(..at)
                .and_then(|text| quotes(text).next_back())
                .map_or(0, |quote| quote + 1);
            let length =
                rest.get(at..).and_then(|text| quotes(text).next()).unwrap_or(rest.len() - at);
            let (before, failure) = rest.split_at(start);
            let (failure, after) = failure.split_at(at - start + length);
            written.push_str(before);
            written.push_str(&self.of_failure(failure));
            rest = after;
        }
        if written.is_empty() {
            return Cow::Borrowed(text);
        }
        written.push_str(rest);
        Cow::Owned(written)
    }

    fn of_failure(&self, text: &str) -> String {
        let mut names = BTreeSet::new();
        for named in text.split("model endpoint ").skip(1) {
            let is_end = |c: char| c.is_whitespace() || "…\"\\".contains(c);
            let named = named.split(is_end).next().unwrap_or_default();
            names.insert(named.trim_end_matches([':', ',', ';', '.', ')']));
        }
        // However often a text names an address, it is replaced once.
        let mut shown = text.to_owned();
        for url in self.0.iter() {
            // Long texts are cut, perhaps within an address.
            let is_it = |named: &&&str| named.starts_with(url.as_str()) || url.starts_with(**named);
            let found: Vec<&&str> = names.iter().rev().filter(is_it).collect();
            if found.is_empty() {
                continue;
            }
            shown = shown.replace(url, HIDDEN);
            if let Some(host) = url.split('/').nth(2) {
                shown = shown.replace(host, HIDDEN);
            }
            for named in found.into_iter().filter(|named| url.starts_with(**named)) {
                let instead = format!("model endpoint {HIDDEN}");
                shown = shown.replace(&format!("model endpoint {named}"), &instead);
            }
        }
        shown
    }

    fn in_bytes(&self, bytes: Bytes) -> Bytes {
        let shown = std::str::from_utf8(&bytes).ok().and_then(|text| match self.hidden(text) {
            Cow::Owned(shown) => Some(shown),
            Cow::Borrowed(_) => None,
        });
        shown.map_or(bytes, Bytes::from)
    }
}

/// Finds the quotation marks that are not escaped.
fn quotes(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    let is_bare = move |at: &usize| {
        text.bytes().take(*at).rev().take_while(|byte| *byte == b'\\').count() % 2 == 0
    };
    text.match_indices('"').map(|(at, _)| at).filter(is_bare)
}

async fn in_response(State(addresses): State<ModelAddresses>, response: Response) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_read = kind.is_some_and(|kind| {
        let is_file = kind.contains("ndjson");
        !is_file && ["json", "event-stream", "text/"].iter().any(|text| kind.contains(text))
    });
    if !is_read {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    if body.size_hint().exact().is_none() {
        return Response::from_parts(parts, Body::from_stream(by_lines(body, addresses)));
    }
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let shown = addresses.in_bytes(bytes);
    if parts.headers.contains_key(CONTENT_LENGTH) && !shown.is_empty() {
        parts.headers.insert(CONTENT_LENGTH, shown.len().into());
    }
    Response::from_parts(parts, Body::from(shown))
}

/// Forwards a stream line by line, so that no address is split between two parts. Each line is collected in memory, so
/// a body that is streamed part by part ends each part with a line end.
fn by_lines(body: Body, addresses: ModelAddresses) -> impl Stream<Item = io::Result<Bytes>> {
    let reader = body.into_data_stream().map_err(io::Error::other).into_async_read();
    futures::stream::try_unfold((reader, addresses), |(mut reader, addresses)| async move {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).await?;
        Ok((!line.is_empty()).then(|| (addresses.in_bytes(line.into()), (reader, addresses))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse as _;

    const URL: &str = "http://10.0.0.7:8000/v1";

    fn addresses() -> ModelAddresses {
        ModelAddresses(Arc::from([URL.to_owned(), "https://models.test/v1".to_owned()]))
    }

    #[test]
    fn an_address_named_as_the_address_of_a_model_is_hidden() {
        for (text, shown) in [
            (
                "cannot reach the model endpoint http://10.0.0.7:8000/v1: 10.0.0.7:8000 refused",
                "cannot reach the model endpoint (address hidden): (address hidden) refused",
            ),
            (
                r#"{"answer": "It is at http://10.0.0.7:8000/v1.", "error": "a \"model endpoint http://10.0.0.7:8000/v1\" of 10.0.0.7:8000", "b": "10.0.0.7:8000"}"#,
                r#"{"answer": "It is at http://10.0.0.7:8000/v1.", "error": "a \"model endpoint (address hidden)\" of (address hidden)", "b": "10.0.0.7:8000"}"#,
            ),
            (
                r#"["model endpoint http://10.0.0.7:8000/v1", "model endpoint https://models.test/v1 at models.test"]"#,
                r#"["model endpoint (address hidden)", "model endpoint (address hidden) at (address hidden)"]"#,
            ),
            ("the model endpoint http://10.0.0.7:80…", "the model endpoint (address hidden)…"),
            ("the model endpoint http://10.0.", "the model endpoint (address hidden)."),
        ] {
            assert_eq!(addresses().hidden(text), shown);
        }
        // As many as a body can have, which no square of their number would end.
        let many = "model endpoint http ".repeat(800_000);
        assert_eq!(addresses().hidden(&many), many.replace("http", HIDDEN));
        for text in [
            "The model runs at http://10.0.0.7:8000/v1.",
            "Is the model endpoint http://elsewhere.test up?",
            "10.0.0.7:8000",
            "",
        ] {
            assert_eq!(addresses().hidden(text), text, "a text that no failure of a model wrote");
        }
    }

    #[tokio::test]
    async fn answers_in_one_piece_and_in_many_hide_it_and_files_stay() {
        let text = format!("{{\"error\": \"the model endpoint {URL} did not answer\"}}");
        for (kind, is_hidden) in [
            ("application/json", true),
            ("application/a2a+json", true),
            ("text/event-stream", true),
            ("text/html; charset=utf-8", true),
            ("application/x-ndjson", false),
            ("application/octet-stream", false),
        ] {
            // A stream can be split anywhere.
            let stream = |at: usize| {
                let (first, second) = text.split_at(at);
                let parts = [first, second, "\n\n", &text].map(str::to_owned);
                Body::from_stream(futures::stream::iter(parts.map(Ok::<_, axum::BoxError>)))
            };
            let streams = (0..=text.len()).map(|at| (stream(at), format!("{text}\n\n{text}")));
            for (body, whole) in streams.chain([(Body::from(text.clone()), text.clone())]) {
                let response = ([(CONTENT_TYPE, kind)], body).into_response();
                let shown = in_response(State(addresses()), response).await.into_body();
                let shown = to_bytes(shown, usize::MAX).await.unwrap();
                let shown = String::from_utf8(shown.to_vec()).unwrap();
                let expected = if is_hidden { whole.replace(URL, HIDDEN) } else { whole };
                assert_eq!(shown, expected, "{kind}");
            }
        }
    }
}
