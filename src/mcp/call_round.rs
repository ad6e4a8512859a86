//! Sends the round that makes a call, and reads what it came to: an end, a question or a task.

use std::sync::atomic::Ordering;

use rmcp::{
    ServiceError,
    model::{CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, RequestMetaObject},
};
use serde_json::{Map, Value};

use super::{
    Answers, Asked, CallContext, Error, Reply, TENANT_META, ToolOutcome,
    elicitation::{self, OpenCallGuard},
    failure::{self, Call},
    menu, outcome,
    progress::Reports,
    request::{self, Answer, Failure},
    server::Server,
    session::Session,
};

/// The call needs an address to be visited first (protocol 2025-11-25).
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// What a call is made with, for the first time or with answers to what it asked.
pub(super) struct Sent {
    pub arguments: Map<String, Value>,
    pub answers: Answers,
    pub state: Option<String>,
}

impl Server {
    /// Sends a call that was let through, connecting first where needed, and counts what it says of the server.
    pub(super) async fn send(
        &self,
        call: &Call<'_>,
        round: Sent,
        context: CallContext,
    ) -> Result<Reply, Error> {
        let tool = call.tool;
        let (session, listing) = self.open(false).await.map_err(|error| match error {
            Error::Start { reason, .. } => call.not_sent(&reason),
            other => other,
        })?;
        let Some(known) = listing.info.tools.iter().find(|known| known.name == tool) else {
            let server = self.config.name.clone();
            return Err(Error::UnknownTool { server, tool: tool.to_owned() });
        };
        // The servers file may have changed since, and the server what it says of the tool.
        if context.under.is_some_and(|under| under.is_milder_than(known.gate())) {
            return Err(call.not_sent(
                "stricter rules hold for this tool than when the call was decided on; call it again, \
                 and a person is asked where the rules want it",
            ));
        }
        let mut params =
            CallToolRequestParams::new(tool.to_owned()).with_arguments(round.arguments);
        let mut at_hand = Answers::new();
        if session.takes_answers() {
            params.input_responses = (!round.answers.is_empty()).then_some(round.answers);
            params.request_state = round.state;
        } else {
            at_hand = round.answers;
        }
        let guard = session.open_calls.open(at_hand, &self.config.secrets);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let reports = Reports::to(context.progress.clone(), &self.config.secrets);
        let meta = meta(context, self.is_bundled());
        let sent = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(call.unknown("the connection was closed meanwhile")),
            sent = request::send_and_report(&session, request, meta, self.bounds(), reports) => sent,
        };
        let reply = match sent {
            Ok(Answer { id, result }) => {
                self.breaker().succeeded();
                let output = listing.outputs.get(tool).map(AsRef::as_ref);
                let limit = self.config.max_result_bytes;
                match outcome::read(tool, result, limit, output, &self.config.secrets) {
                    Reply::Done(outcome) => {
                        let protocol_version = listing.info.protocol_version.clone();
                        let via = session.via(protocol_version, id.to_string());
                        Ok(Reply::Done(ToolOutcome { via: Some(via), ..outcome }))
                    }
                    other => Ok(other),
                }
            }
            Err(reason) => self.failed(call, reason, &session).await,
        };
        if session.open_calls.goes_one_by_one() {
            self.one_by_one.store(true, Ordering::Relaxed);
        }
        broken_off(reply, &guard)
    }

    /// Reads what a call without a proper answer means, and counts what that says of the server.
    async fn failed(
        &self,
        call: &Call<'_>,
        reason: Failure,
        session: &Session,
    ) -> Result<Reply, Error> {
        let health = failure::health(&reason);
        if let Some(asked) = self.needs_a_visit(&reason) {
            self.breaker().succeeded();
            return Ok(Reply::Asked { asked });
        }
        let judged = failure::judge(call, reason, session).await;
        let said = judged.as_ref().err().map(Error::reason).unwrap_or_default();
        match health {
            failure::Health::Well => self.breaker().succeeded(),
            failure::Health::Lost if !session.is_first_loss() => {}
            failure::Health::Ill | failure::Health::Lost => self.count_failure(said),
        }
        judged.map(Reply::Done)
    }

    /// Returns the addresses to be visited before the call is made again, if that is what it failed for.
    fn needs_a_visit(&self, reason: &Failure) -> Option<Asked> {
        let Failure::Service(ServiceError::McpError(error)) = reason else { return None };
        if error.code != URL_ELICITATION_REQUIRED {
            return None;
        }
        let secrets = &self.config.secrets;
        let asked = elicitation::required_urls(error.data.as_ref(), secrets)?;
        let broken_off = Some(secrets.redact(&menu::one_line(&error.message)));
        Some(Asked { broken_off, ..asked })
    }
}

/// Puts what was asked during a call in the place of its end, which is only what the tool made of `cancel`.
fn broken_off(reply: Result<Reply, Error>, guard: &OpenCallGuard) -> Result<Reply, Error> {
    let questions = guard.asked();
    if questions.is_empty() {
        return reply;
    }
    let said = match reply {
        Ok(Reply::Done(outcome)) => outcome.text,
        Err(Error::Refused { reason, .. }) => reason,
        other => return other,
    };
    Ok(Reply::Asked { asked: Asked { questions, broken_off: Some(said), ..Asked::default() } })
}

/// What travels beside the arguments: stable key and trace, both for the server's own use; whose call it is, for a
/// server that is this program itself.
fn meta(context: CallContext, is_bundled: bool) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    if is_bundled && !context.tenant.is_empty() {
        meta.insert(TENANT_META.into(), context.tenant.into());
    }
    if !context.idempotency_key.is_empty() {
        meta.insert("dev.perihelion/idempotency-key".into(), context.idempotency_key.into());
    }
    if let Some(traceparent) = context.traceparent {
        meta.set_traceparent(traceparent);
    }
    meta
}
