//! Sends the round of a call, and reads its result: an end, a question or a task.

use std::sync::Arc;

use rmcp::{
    ErrorData, ServiceError,
    model::{CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, RequestMetaObject},
};
use serde_json::{Map, Value, json};

use super::elicitation::{self, OpenCall};
use super::outcome::{self, Call};
use crate::catalog::listing::Opened;
use crate::configuration::redact::Secrets;
use crate::transport::delivery::{self, Delivery};
use crate::transport::oauth::Access;
use crate::transport::open_calls::Reports;
use crate::transport::session::{self, Answer, Bounds, Failure, Session};
use crate::types::{
    Answers, Asked, CONTEXT_META, CallContext, Error, Reply, Result, TENANT_META, ToolOutcome, text,
};

/// The call needs an address to be visited first (protocol 2025-11-25).
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// The content of a call, for the first time or with answers to its questions.
#[derive(Clone)]
pub(crate) struct Given {
    pub arguments: Map<String, Value>,
    pub answers: Answers,
    pub state: Option<String>,
}

pub(crate) enum Verdict {
    /// It answers, if only with a refusal.
    Well,
    Failed(String),
}

/// How a round ended, and its findings about the server; `None` if it was not sent, or the findings are known.
pub(crate) struct RoundOutcome {
    pub reply: Result<Reply>,
    pub verdict: Option<Verdict>,
    /// The connection was lost before the call was handed to it.
    pub is_connection_lost: bool,
}

impl RoundOutcome {
    /// Makes the outcome of a round in which the server itself responded, if only with a refusal.
    fn well(reply: Result<Reply>) -> Self {
        Self { reply, verdict: Some(Verdict::Well), is_connection_lost: false }
    }
}

impl From<Error> for RoundOutcome {
    fn from(error: Error) -> Self {
        Self { reply: Err(error), verdict: None, is_connection_lost: false }
    }
}

pub(crate) async fn send(
    call: &Call<'_>,
    opened: &Opened,
    given: Given,
    context: CallContext,
) -> RoundOutcome {
    let Opened { session, listing } = opened;
    let Call { config, tool, .. } = *call;
    let Some(known) = listing.tool(tool) else {
        return Error::UnknownTool { server: config.name.clone(), tool: tool.to_owned() }.into();
    };
    // The servers file may have changed since, and the server what it says of the tool.
    if context.under.is_some_and(|under| under.is_weaker_than(known.call_policy())) {
        let reason = "the rules for this tool became stricter after the decision to call it; call it again under the new rules";
        return call.not_sent(reason).into();
    }
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(given.arguments);
    let mut at_hand = Answers::new();
    if session.takes_answers() {
        params.input_responses = (!given.answers.is_empty()).then_some(given.answers);
        params.request_state = given.state;
    } else {
        at_hand = given.answers;
    }
    let open_call = Arc::new(OpenCall::new(at_hand, &config.secrets));
    let _guard = session.open_calls.open(open_call.clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let reports = Reports::to(context.progress.clone(), &config.secrets);
    let meta = meta(context, call.is_bundled);
    let bounds = Bounds::of_calls(config);
    let sent = tokio::select! {
        biased;
        () = call.closed.cancelled() => return call.unknown("the connection was closed during the call").into(),
        sent = session::send_and_report(session, request, meta, bounds, reports) => sent,
    };
    let outcome = match sent {
        Ok(answer) => RoundOutcome::well(Ok(read(call, opened, answer))),
        Err(failure) => failed(call, failure, session).await,
    };
    RoundOutcome { reply: broken_off(outcome.reply, &open_call), ..outcome }
}

fn read(call: &Call<'_>, opened: &Opened, answer: Answer) -> Reply {
    let Answer { id, result } = answer;
    let Call { config, tool, .. } = *call;
    let output = opened.listing.outputs.get(tool).map(AsRef::as_ref);
    match outcome::read(tool, result, config.max_result_bytes, output, &config.secrets) {
        Reply::Done(outcome) => {
            Reply::Done(ToolOutcome { via: Some(opened.via(id.to_string())), ..outcome })
        }
        other => other,
    }
}

/// Interprets a call without a proper answer.
async fn failed(call: &Call<'_>, failure: Failure, session: &Session) -> RoundOutcome {
    let mut is_gone = false;
    let mut is_connection_lost = false;
    let error = match failure {
        Failure::NotHandedOver => {
            is_gone = true;
            is_connection_lost = !session.is_open();
            call.not_sent("the connection is closed")
        }
        Failure::Closed => {
            is_gone = true;
            let end = session.why_ended().await;
            call.unknown(&format!("the server went away before it answered: {end}"))
        }
        Failure::TimedOut(limit) => {
            call.unknown(&format!("no answer within {} s", limit.as_secs_f64()))
        }
        Failure::Service(ServiceError::McpError(error)) => {
            return RoundOutcome::well(match needs_a_visit(&error, &call.config.secrets) {
                Some(asked) => Ok(Reply::Asked { asked }),
                None => outcome::rpc_error(call, &error).map(Reply::Done),
            });
        }
        Failure::Service(ServiceError::TransportSend(error)) => {
            let error = error.error.as_ref();
            let login = call.access.filter(|_| delivery::wants_token(error));
            let reason = login.and_then(Access::failure);
            let reason = reason.unwrap_or_else(|| delivery::chain(error));
            match delivery::of(error) {
                Delivery::NotSent => {
                    // A pipe that broke before the whole line was written.
                    is_connection_lost = session.is_child();
                    call.not_sent(&reason)
                }
                Delivery::Refused => return RoundOutcome::well(Err(call.refused(&reason))),
                Delivery::TooLong(bytes) => {
                    let size = format!("more than {bytes}");
                    let outcome = outcome::too_large(call.tool, size, call.config.max_result_bytes);
                    return RoundOutcome::well(Ok(Reply::Done(outcome)));
                }
                Delivery::Unknown => call.unknown(&reason),
            }
        }
        Failure::Service(other) => call.unknown(&delivery::chain(&other)),
    };
    let is_news = !is_gone || session.is_first_loss();
    let verdict = is_news.then(|| Verdict::Failed(error.reason().to_owned()));
    RoundOutcome { reply: Err(error), verdict, is_connection_lost }
}

/// Returns the addresses to visit before the call is repeated, if it failed for that reason.
fn needs_a_visit(error: &ErrorData, secrets: &Secrets) -> Option<Asked> {
    if error.code != URL_ELICITATION_REQUIRED {
        return None;
    }
    let asked = elicitation::required_urls(error.data.as_ref(), secrets)?;
    let broken_off = Some(text::one_line(&secrets.redact(&error.message)));
    Some(Asked { broken_off, ..asked })
}

/// Replaces the end of a call by its questions, because the end is only the tool's reaction to `cancel`.
fn broken_off(reply: Result<Reply>, call: &OpenCall) -> Result<Reply> {
    let questions = call.asked();
    if questions.is_empty() {
        return reply;
    }
    let words = match reply {
        Ok(Reply::Done(outcome)) => outcome.text,
        Err(Error::Refused { reason, .. }) => reason.to_string(),
        other => return other,
    };
    Ok(Reply::Asked { asked: Asked { questions, broken_off: Some(words), ..Asked::default() } })
}

/// Data next to the arguments: a stable key and the trace, for the server's use; the owner of the call, for a bundled
/// server.
fn meta(context: CallContext, is_bundled: bool) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    if is_bundled && !context.tenant.is_empty() {
        meta.insert(TENANT_META.into(), context.tenant.into());
    }
    if !context.idempotency_key.is_empty() {
        meta.insert("dev.perihelion/idempotency-key".into(), context.idempotency_key.into());
    }
    if !context.beside.is_empty() {
        meta.insert(CONTEXT_META.into(), json!(context.beside));
    }
    if let Some(traceparent) = context.traceparent {
        meta.set_traceparent(traceparent);
    }
    meta
}
