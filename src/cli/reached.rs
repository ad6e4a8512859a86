//! Addresses that the settings name, besides the database and the models: each is tried as a run uses it.

use std::time::Duration;

use perihelion_api::check_issuers;
use perihelion_embeddings::Endpoint;
use perihelion_http::reach;
use perihelion_llm::{self as llm, EmbeddingModel as _};
use perihelion_runtime::{collector as collector_of, open_store_to_read};
use perihelion_servers::Finding::{self, Bad, Good, Odd};
use perihelion_settings::config::{Names, OtherParser, Serve, Settings};
use perihelion_telemetry::metrics::Deliveries;
use perihelion_telemetry::otlp;

/// How long a service may take to answer.
pub(super) const ANSWER: Duration = Duration::from_secs(5);

pub(super) async fn check(settings: &Settings, found: &mut Vec<Finding>) {
    found.extend(names(&settings.serve));
    found.push(embeddings(settings).await);
    if let Some(OtherParser::Docling(url)) = &settings.documents.parser {
        found.push(docling(url).await);
    }
    collector(settings, found).await;
    found.extend(metrics(settings).await);
    for (table, outcome) in check_issuers(&settings.serve).await {
        found.push(match outcome {
            Ok(()) => Good(format!("{table}: the issuer publishes its keys")),
            Err(error) => Bad(format!(
                "{table}: {}; correct [{table}], or start the issuer",
                with_cause(&*error)
            )),
        });
    }
}

/// Returns an error with its innermost cause.
fn with_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let text = error.to_string();
    let cause = reach::cause(error);
    if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
}

/// Returns an address without its query, which can have a key.
pub(super) fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// Reports names of the service that match no request.
fn names(serve: &Serve) -> Vec<Finding> {
    let unfit = |key: &str, form: &str, names: &Names, fits: fn(&str) -> bool| {
        let unfit = names.0.iter().filter(|text| !fits(text));
        let odd = |text| Odd(format!("serve.{key} matches no request; write {form}: {text}"));
        unfit.map(odd).collect::<Vec<_>>()
    };
    let is_origin = |text: &str| {
        text == "null" || text.split_once("://").is_some_and(|(_, host)| !host.contains('/'))
    };
    let is_host =
        |text: &str| !text.contains('/') && (text.starts_with('[') || !text.contains(':'));
    let is_target = |text: &str| !text.contains('/');
    [
        unfit("origins", "scheme and host, such as https://a.example", &serve.origins, is_origin),
        unfit("hosts", "a name alone, such as agents.example", &serve.hosts, is_host),
        unfit("callback_hosts", "name or name:port", &serve.callback_hosts, is_target),
    ]
    .concat()
}

/// Requests one vector from the embedding model, if one is configured.
async fn embeddings(settings: &Settings) -> Finding {
    let Some(settings) = &settings.embeddings else {
        return Good("embeddings: not configured, using keyword search only".to_owned());
    };
    let asked = async {
        let model = Endpoint::new(settings).map_err(llm::Error::from)?;
        let vectors = model.embed(&["checkup".to_owned()]).await;
        let length = vectors?.first().map_or(0, Vec::len);
        let text =
            format!("{} at {}, vectors of {length}", model.model(), without_query(&settings.url));
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(text)
    };
    match asked.await {
        Ok(text) => Good(format!("embeddings: {text}")),
        Err(error) => Odd(format!("embeddings: {error}; using keyword search only")),
    }
}

/// Asks a docling-serve for anything: an answer of any status shows that it is there.
async fn docling(url: &str) -> Finding {
    perihelion_settings::config::tls::install();
    let shown = without_query(url);
    let health = format!("{}/health", shown.trim_end_matches('/'));
    let asked = async { reach::client(ANSWER, url)?.get(&health).timeout(ANSWER).send().await };
    let Err(error) = asked.await else { return Good(format!("document parser: {shown} answers")) };
    let why = reach::cause(&error.without_url());
    Odd(format!(
        "document parser: {shown} does not answer: {why}; scans and unknown formats are rejected. Start it, or correct \
         documents.parser"
    ))
}

/// Sends the collector an empty request, if one is configured, and counts its undelivered traces.
async fn collector(settings: &Settings, found: &mut Vec<Finding>) {
    let Some(collector) = collector_of(settings) else { return };
    let answer = match otlp::Sink::new(&collector) {
        Ok(sink) => sink.check().await,
        Err(error) => Err(error),
    };
    let endpoint = without_query(&collector.endpoint);
    found.push(match answer {
        Ok(()) => Good(format!("traces: the collector at {endpoint} accepts traces")),
        Err(error) => Bad(format!("traces: {endpoint}: {error}")),
    });
    let pending = async {
        let store = open_store_to_read(settings).await.ok()?;
        let pending = store.outbox()?.count().await.ok();
        store.close().await;
        pending
    };
    let threads = match pending.await {
        None | Some(0) => return,
        Some(1) => "1 thread has".to_owned(),
        Some(pending) => format!("{pending} threads have"),
    };
    found.push(Odd(format!("traces: {threads} unsent traces; the next run sends them")));
}

/// Sends the collector of metrics an empty request if it has its own address; that of the traces need not take metrics.
async fn metrics(settings: &Settings) -> Option<Finding> {
    let collector = settings.metrics.otlp.as_ref().filter(|one| one.transport.is_exact)?;
    let endpoint = without_query(&collector.endpoint);
    Some(match Deliveries::check(collector).await {
        Ok(()) => Good(format!("metrics: the collector at {endpoint} accepts metrics")),
        Err(why) => Bad(format!(
            "metrics: {endpoint}: {why}; check metrics.otlp_endpoint and the collector"
        )),
    })
}
