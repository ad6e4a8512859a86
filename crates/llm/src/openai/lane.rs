//! The path of one role to its endpoint: attempts, waits, and errors with a fix.

use std::{sync::Arc, time::Duration};

use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::dialect::Dialect;
use super::stream::{Parser, Shown, StreamedAnswer};
use super::transport::{self, BodyError, Events, SendError, Transport};
use super::wire::{self, Unusable};
use crate::cleaning::{Cleaned, Cleaner};
use crate::native::{self, Reader};
use crate::repetition::Watch;
use crate::types::{BROKEN, FILLED, REPEATED};
use crate::{ChatRequest, ChatResponse, Error, TokenSink, Usage, bounds, fit, line, written_calls};
use perihelion_clock as clock;
use perihelion_http::reach;
use perihelion_settings::config::ModelSettings;
use perihelion_settings::metrics;

/// An endpoint's data after the last piece of a streamed answer.
const DONE: &str = "[DONE]";

const CUT_OFF: &str = "the answer was cut off: ";

/// Characters of an endpoint's text in an error.
const EXCERPT: usize = 400;

/// Parts of refusals that no wait fixes, though their statuses are those of passing ones: a spent quota, what a local
/// server was started without, what its model cannot do or its machine cannot hold.
const LASTING: [&str; 7] = [
    "insufficient_quota",
    "exceeded your current quota",
    "requires --jinja",
    "not supported",
    "does not support",
    "missing data required for image input",
    "requires more system memory",
];

pub(super) struct Lane {
    pub transport: Transport,
    settings: ModelSettings,
    /// The address as errors show it: without query.
    endpoint: String,
    pub dialect: Arc<Dialect>,
}

pub(super) struct Failed {
    pub error: Error,
    /// The next attempt may go better.
    transient: bool,
    retry_after: Option<Duration>,
    /// A partial answer, empty or cut off: the result after the last attempt.
    rest: Option<Box<ChatResponse>>,
}

enum Answer {
    Whole(String),
    Stream(reqwest::Response),
}

impl Failed {
    fn for_good(error: Error) -> Self {
        Self { error, transient: false, retry_after: None, rest: None }
    }

    fn for_now(error: Error) -> Self {
        Self { transient: true, ..Self::for_good(error) }
    }
}

impl Lane {
    pub(super) fn new(
        http: reqwest::Client,
        url: &str,
        settings: ModelSettings,
        dialect: Arc<Dialect>,
    ) -> Self {
        let transport = Transport::new(http, url, &settings);
        let endpoint = url.split('?').next().unwrap_or_default().to_owned();
        Self { transport, settings, endpoint, dialect }
    }

    /// Answers a request, with as many attempts as the settings allow.
    ///
    /// A streamed answer is not attempted again once a piece of it was handed out.
    pub(super) async fn chat(
        &self,
        request: &ChatRequest,
        mut sink: Option<TokenSink<'_>>,
    ) -> Result<ChatResponse, Error> {
        let mut delays = reach::delays(
            self.settings.max_retries,
            self.settings.backoff,
            self.settings.backoff_max,
        );
        let mut handed_out = 0;
        let mut retry = 0;
        let mut fitted = self.settings.room().and_then(|room| fit::fit(request, room));
        let mut is_shrunk = false;
        let mut wasted = Usage::default();
        let mut forms = self.dialect.forms(request);
        loop {
            let request = fitted.as_ref().unwrap_or(request);
            let is_streamed = sink.is_some() || request.manner.is_watched;
            let chat = wire::body(request, &self.settings, forms, is_streamed);
            let reader = Reader::new(self.settings.api, &chat);
            let body = native::body(self.settings.api, chat);
            let mut unseen = 0;
            let shown = match sink.as_mut() {
                Some(sink) => Shown { sink: &mut **sink, bytes: &mut handed_out },
                None => Shown { sink: &mut |_: &str| {}, bytes: &mut unseen },
            };
            let outcome = self.ask(request, &body, reader, is_streamed, shown).await;
            let failed = match outcome {
                Ok(mut response) => {
                    response.usage += wasted;
                    response.provider = self.settings.api.provider().map(str::to_owned);
                    return Ok(response);
                }
                Err(failed) => failed,
            };
            if let Error::Refused { status, message, .. } = &failed.error
                && handed_out == 0
                && let Some(simpler) = self.dialect.learn(forms, request, *status, message)
            {
                forms = simpler;
                tracing::info!(endpoint = %self.endpoint, %message, "asking the model in a simpler form");
                metrics::model_retried(request.role.as_str(), "simpler_form");
                continue;
            }
            if let Error::Refused { status, message, .. } = &failed.error
                && handed_out == 0
                && !is_shrunk
                && fit::is_too_long(*status, message)
                && let Some(shorter) = fit::fit(request, fit::count(request) / 2)
                && fit::count(&shorter) < fit::count(request)
            {
                tracing::info!(endpoint = %self.endpoint, %message, "asking the model with a shorter prompt");
                metrics::model_retried(request.role.as_str(), "context_length");
                (fitted, is_shrunk) = (Some(shorter), true);
                continue;
            }
            let wait = if failed.transient && handed_out == 0 { delays.next() } else { None };
            let Some(wait) = wait else {
                let mut rest = *failed.rest.ok_or(failed.error)?;
                rest.usage += wasted;
                if let Some(sink) = sink.filter(|_| handed_out == 0 && !rest.content.is_empty()) {
                    sink(&rest.content);
                }
                return Ok(rest);
            };
            wasted += failed.rest.map(|rest| rest.usage).unwrap_or_default();
            let wait =
                failed.retry_after.map_or(wait, |asked| asked.min(self.settings.backoff_max));
            retry += 1;
            let of = self.settings.max_retries;
            let seconds = wait.as_secs_f64();
            tracing::warn!("{}, retry {retry} of {of} in {seconds:.1} s", failed.error.brief());
            tracing::debug!(error = %failed.error, "asking the model again");
            metrics::model_retried(request.role.as_str(), failed.error.class());
            clock::sleep(wait).await;
        }
    }

    /// Asks once, and reads the answer in whichever way the endpoint sends it.
    async fn ask(
        &self,
        request: &ChatRequest,
        body: &Value,
        mut reader: Reader,
        is_streamed: bool,
        mut shown: Shown<'_>,
    ) -> Result<ChatResponse, Failed> {
        let timeout = self.settings.timeout;
        let asked = async {
            let sent = self.transport.chat(request, body, is_streamed).await;
            let response = sent.map_err(|error| self.failed(error))?;
            if transport::is_stream(response.headers(), is_streamed) {
                return Ok(Answer::Stream(response));
            }
            let before = if is_streamed { CUT_OFF } else { "" };
            let text = transport::read_whole(response).await;
            text.map(Answer::Whole).map_err(|error| self.broken(before, error))
        };
        let response = match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(Answer::Stream(response))) => response,
            Ok(Ok(Answer::Whole(text))) => {
                if is_streamed {
                    self.dialect.ignore_streaming();
                }
                let whole = self.read_text(request, &reader, &text)?;
                shown.piece(&whole.content);
                return Ok(whole);
            }
            Ok(Err(failed)) => return Err(failed),
            Err(_) => return Err(Failed::for_now(self.timeout())),
        };
        let mut events = Events::new(response);
        let mut parser = Parser::default();
        let mut cleaner = Cleaner::new(request, self.dialect.expects_reasoning());
        let mut streamed = StreamedAnswer::default();
        let mut has_ended = false;
        let mut watch = Watch::new(request.manner);
        let mut is_repeated = false;
        while !is_repeated {
            let event = match tokio::time::timeout(timeout, events.next()).await {
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(self.broken(CUT_OFF, error)),
                Err(_) => return Err(Failed::for_now(self.timeout())),
            };
            if event.trim() == DONE {
                has_ended = true;
                break;
            }
            let chunk = match parser.parse(&event, true) {
                Ok(chunk) => reader.chunk(chunk),
                // The connection ended during this piece.
                Err(_) if events.is_over() => break,
                Err(error) => return Err(self.not_json(&error, &event)),
            };
            if let Some((message, code)) = reach::error_in(&chunk) {
                return Err(self.refused(code.unwrap_or(500), &message, None));
            }
            let piece = streamed.take(&chunk);
            is_repeated = watch.push(&piece);
            shown.piece(&cleaner.push(&piece, streamed.has_reasoning()));
        }
        if streamed.calls() > wire::MAX_CALLS {
            return Err(Failed::for_good(self.malformed(&wire::too_many_calls(streamed.calls()))));
        }
        has_ended |= streamed.has_ended();
        shown.piece(&cleaner.push(&streamed.rest(), streamed.has_reasoning()));
        let (last, cleaned) = cleaner.finish();
        let mut response = streamed.finish(&self.settings.model);
        if is_repeated {
            response.finish_reason = Some(REPEATED.to_owned());
        } else if !has_ended {
            response.finish_reason = Some(BROKEN.to_owned());
        }
        let text = cleaned.content.clone();
        let answer = self.accept(request, response, cleaned);
        match &answer {
            Ok(answer) => shown.rest(answer, &text, &last),
            // It is not begun again, so the part is given whole.
            Err(_) if *shown.bytes > 0 => shown.piece(&last),
            Err(_) => {}
        }
        answer
    }

    fn read_text(
        &self,
        request: &ChatRequest,
        reader: &Reader,
        text: &str,
    ) -> Result<ChatResponse, Failed> {
        let value = Parser::default().parse(text, false).map_err(|e| self.not_json(&e, text))?;
        let value = reader.whole(value);
        // Some gateways report an upstream's refusal with status 200.
        if let Some((message, code)) = reach::error_in(&value)
            && value.pointer("/choices/0/message/content").is_none_or(Value::is_null)
        {
            return Err(self.refused(code.unwrap_or(500), &message, None));
        }
        let mut response =
            wire::response(&value, &self.settings.model).map_err(|unusable| match unusable {
                Unusable::Hiccup(reason) => Failed::for_now(self.malformed(&reason)),
                Unusable::Refused(reason) => Failed::for_good(self.malformed(&reason)),
            })?;
        let mut cleaner = Cleaner::new(request, self.dialect.expects_reasoning());
        cleaner.push(&std::mem::take(&mut response.content), false);
        let (_, cleaned) = cleaner.finish();
        self.accept(request, response, cleaned)
    }

    /// Composes an answer; an empty or broken one is requested again.
    fn accept(
        &self,
        request: &ChatRequest,
        mut response: ChatResponse,
        mut cleaned: Cleaned,
    ) -> Result<ChatResponse, Failed> {
        if cleaned.is_begun_by_template {
            self.dialect.expect_reasoning();
        }
        let has_written_calls = !cleaned.calls.is_empty();
        let written = written_calls::take(request, &mut cleaned);
        response.content = cleaned.content;
        if !cleaned.reasoning.is_empty() {
            response.reasoning.get_or_insert_default().push_str(cleaned.reasoning.trim());
        }
        if response.tool_calls.is_empty() {
            response.tool_calls = wire::written(written);
        }
        wire::settle(&mut response.tool_calls, request);
        if response.finish_reason.as_deref() != Some(BROKEN) && self.is_filled(request, &response) {
            response.finish_reason = Some(FILLED.to_owned());
        }
        if response.usage.total() == 0 {
            response.usage = fit::estimate(request, &response);
        }
        let cut = response.cut();
        if cut.is_some() {
            // The last call may be cut as well, and read like one without arguments.
            response.tool_calls.clear();
        }
        let is_empty = response.content.trim().is_empty() && response.tool_calls.is_empty();
        let reason = match response.finish_reason.as_deref() {
            Some(BROKEN) => "it was cut off before its end",
            _ if cut.is_some() || !is_empty => return Ok(response),
            _ if has_written_calls => "it is a tool call in the text, which cannot be made here",
            _ if response.reasoning.is_some() => "it contains the model's reasoning and no answer",
            _ => "it is empty",
        };
        let error = self.malformed(reason);
        Err(Failed { rest: Some(Box::new(response)), ..Failed::for_now(error) })
    }

    /// Returns whether the schema ended a text of the answer, and not the model.
    fn is_filled(&self, request: &ChatRequest, response: &ChatResponse) -> bool {
        let Some(format) = &request.format else { return false };
        let bounded = wire::bounded(request, format, &self.settings);
        serde_json::from_str::<Value>(&response.content)
            .is_ok_and(|answer| bounds::is_filled(&format.schema, &bounded, &answer))
    }

    /// Reads why a body did not arrive; `before` begins the message.
    fn broken(&self, before: &str, error: BodyError) -> Failed {
        let reason = match &error {
            BodyError::Broken(error) if before.is_empty() => reach::cause(error),
            error => format!("{before}{error}"),
        };
        // What is too long would come again.
        self.unreachable(&reason, !matches!(error, BodyError::TooLong))
    }

    fn unreachable(&self, reason: &str, transient: bool) -> Failed {
        let reason = self.clean(reason);
        let error = Error::Unreachable { endpoint: self.endpoint.clone(), reason };
        Failed { transient, ..Failed::for_good(error) }
    }

    pub(super) fn failed(&self, error: SendError) -> Failed {
        match error {
            SendError::Refused { status, retry_after, body } => {
                self.refused(status, &reach::refusal_message(&body), retry_after)
            }
            SendError::Lost(error) => {
                let is_builder = error.is_builder();
                self.unreachable(&reach::cause(&error.without_url()), !is_builder)
            }
        }
    }

    pub(super) fn refused(&self, status: u16, message: &str, after: Option<Duration>) -> Failed {
        let mut message = self.clean(message);
        if matches!(status, 401 | 403) {
            message = format!("{message}; {}", transport::about_the_key(&self.settings));
        }
        let is_lasting = LASTING.iter().any(|words| message.contains(words));
        let transient = reach::is_transient(status) && status != 501 && !is_lasting;
        let error = Error::Refused { endpoint: self.endpoint.clone(), status, message };
        Failed { error, transient, retry_after: after, rest: None }
    }

    fn not_json(&self, error: &serde_json::Error, body: &str) -> Failed {
        let reason = match body.trim() {
            "" => "it is empty".to_owned(),
            body => format!("it is not JSON ({error}): {body}"),
        };
        // A body that ends too early was cut off; another one would come again.
        Failed { transient: error.is_eof(), ..Failed::for_good(self.malformed(&reason)) }
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { endpoint: self.endpoint.clone(), reason: self.clean(reason) }
    }

    pub(super) fn timeout(&self) -> Error {
        let seconds = self.settings.timeout.as_secs_f64();
        Error::Timeout { endpoint: self.endpoint.clone(), seconds }
    }

    /// Prepares a text for an error: one line, bounded, and without the API key if it is echoed.
    ///
    /// The key goes first: a text that was cut before could end during it.
    fn clean(&self, text: &str) -> String {
        let key = self.settings.api_key.as_ref().map_or("", |key| key.expose_secret());
        let text = if key.is_empty() { text.to_owned() } else { text.replace(key, "[API key]") };
        match line(&text, EXCERPT) {
            empty if empty.is_empty() => "(no message)".to_owned(),
            text => text,
        }
    }
}
