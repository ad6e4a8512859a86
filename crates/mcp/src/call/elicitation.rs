//! Reads the questions of servers to people, and answers those that come during a call.
//!
//! Before protocol 2026-07-28 a question comes as a request while the call waits. A person may take days, so the
//! question is never kept open. Without an answer the server gets `cancel` and the call ends. The question is stored,
//! and the repeated call finds its answers here.

use parking_lot::Mutex;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;

use super::form;
use crate::types::{Answers, Asked, Question, Wants, declined, schema, text};
use crate::{configuration::redact::Secrets, transport::open_calls::Askable};

/// More questions at once than this are not a question but a questionnaire.
const MAX_QUESTIONS: usize = 20;
/// Longest question with its form, as JSON.
const MAX_QUESTION_BYTES: usize = 64 * 1024;
/// Longest state that is stored for a server.
const MAX_STATE_BYTES: usize = 1024 * 1024;

/// Why questions of a server are not shown to a person, as text for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unaskable {
    #[error("it asked more than {MAX_QUESTIONS} questions at once")]
    TooMany,
    #[error("it made a request that this client does not offer: {0}")]
    NotOffered(String),
    #[error("its question has no method")]
    NoMethod,
    #[error("its request state is longer than {MAX_STATE_BYTES} bytes")]
    LongState,
    #[error("its request state contains a secret of its configuration")]
    Secret,
    #[error("it asked no question")]
    Nothing,
    #[error("its question is longer than {MAX_QUESTION_BYTES} bytes")]
    LongQuestion,
    #[error("a form must not ask for a secret: {0}")]
    SecretField(String),
    #[error("its form cannot be used: {0}")]
    Form(#[from] schema::Unusable),
    #[error("{source}: {url}")]
    Url { source: url::ParseError, url: String },
    #[error("only addresses of http and https are shown: {0}")]
    Scheme(String),
    #[error("it asks in a mode that is not supported: {0}")]
    Mode(String),
}

/// Reads the questions of an `input_required` result, or of a task.
pub(crate) fn read(answer: &Value, secrets: &Secrets) -> Result<Asked, Unaskable> {
    let requests = answer.get("inputRequests").and_then(Value::as_object);
    let mut asked = Asked::default();
    for (key, request) in requests.into_iter().flatten() {
        if asked.questions.len() + asked.settled.len() == MAX_QUESTIONS {
            return Err(Unaskable::TooMany);
        }
        match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => {}
            Some(other) => return Err(Unaskable::NotOffered(other.to_owned())),
            None => return Err(Unaskable::NoMethod),
        }
        let params = request.get("params").unwrap_or(&Value::Null);
        match question(key, params, secrets) {
            Ok(question) => asked.questions.push(question),
            Err(reason) => {
                tracing::warn!(%reason, "a question of an MCP server was declined");
                asked.settled.insert(key.clone(), declined());
            }
        }
    }
    if let Some(state) = answer.get("requestState").and_then(Value::as_str) {
        if state.len() > MAX_STATE_BYTES {
            return Err(Unaskable::LongState);
        }
        if secrets.redact(state) != state {
            // It would be stored, and it cannot be redacted: it goes back as it came.
            return Err(Unaskable::Secret);
        }
        asked.state = Some(state.to_owned());
    }
    if requests.is_none() && asked.state.is_none() {
        return Err(Unaskable::Nothing);
    }
    Ok(asked)
}

/// Reads one question; an error explains why it is not shown to a person.
fn question(key: &str, params: &Value, secrets: &Secrets) -> Result<Question, Unaskable> {
    if text::json_bytes(params) > MAX_QUESTION_BYTES {
        return Err(Unaskable::LongQuestion);
    }
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
    let wants = match params.get("mode").and_then(Value::as_str).unwrap_or("form") {
        "form" => {
            let schema = params.get("requestedSchema").cloned().unwrap_or(Value::Null);
            if let Some(field) = form::secret_field(&schema) {
                return Err(Unaskable::SecretField(field.to_owned()));
            }
            schema::compile_form(&schema)?;
            Wants::Form { requested_schema: secrets.redact_json(schema) }
        }
        "url" => {
            let url = params.get("url").and_then(Value::as_str).unwrap_or_default();
            let parsed = reqwest::Url::parse(url)
                .map_err(|source| Unaskable::Url { source, url: url.to_owned() })?;
            if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
                return Err(Unaskable::Scheme(parsed.scheme().to_owned()));
            }
            // As it is understood, not as it is dressed up: a look-alike host shows in its plain letters.
            Wants::Url { url: secrets.redact(parsed.as_str()) }
        }
        other => return Err(Unaskable::Mode(other.to_owned())),
    };
    Ok(Question { key: key.to_owned(), message: secrets.redact(message), wants })
}

/// The questions that a refused call carries (code -32042): addresses to be visited before it is made again.
pub(super) fn required_urls(data: Option<&Value>, secrets: &Secrets) -> Option<Asked> {
    let listed = data?.get("elicitations")?.as_array()?;
    let questions = listed.iter().take(MAX_QUESTIONS).map(|params| {
        let key = params.get("elicitationId").and_then(Value::as_str).unwrap_or_default();
        question(key, params, secrets)
    });
    let questions: Vec<Question> = questions.collect::<Result<_, _>>().ok()?;
    (!questions.is_empty()).then(|| Asked { questions, ..Asked::default() })
}

/// The answers that a call has during its flight, and the questions without an answer.
pub(super) struct OpenCall {
    answers: Answers,
    secrets: Secrets,
    asked: Mutex<Vec<Question>>,
}

impl OpenCall {
    pub fn new(answers: Answers, secrets: &Secrets) -> Self {
        Self { answers, secrets: secrets.clone(), asked: Mutex::default() }
    }

    pub fn asked(&self) -> Vec<Question> {
        self.asked.lock().clone()
    }
}

impl Askable for OpenCall {
    /// Answers a question with a stored answer; otherwise stores it and returns `cancel`.
    fn answer(&self, params: &ElicitRequestParams) -> ElicitResult {
        let cancel = ElicitResult::new(ElicitationAction::Cancel);
        let Ok(params) = serde_json::to_value(params) else { return cancel };
        let mut content = params.clone();
        if let Some(content) = content.as_object_mut() {
            // What differs from call to call must not make it another question.
            content.retain(|field, _| field != "_meta" && field != "elicitationId");
        }
        let key = blake3::hash(content.to_string().as_bytes()).to_hex();
        let key = key.get(..32).unwrap_or_default();
        if let Some(answer) = self.answers.get(key) {
            return serde_json::from_value(answer.clone()).unwrap_or(cancel);
        }
        match question(key, &params, &self.secrets) {
            Ok(question) => {
                let mut asked = self.asked.lock();
                if asked.len() < MAX_QUESTIONS && !asked.contains(&question) {
                    asked.push(question);
                }
                cancel
            }
            Err(reason) => {
                tracing::warn!(%reason, "a question of an MCP server was declined");
                ElicitResult::new(ElicitationAction::Decline)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::transport::open_calls::OpenCalls;

    fn call(answers: Answers) -> Arc<OpenCall> {
        Arc::new(OpenCall::new(answers, &Secrets::default()))
    }

    fn form(message: &str) -> ElicitRequestParams {
        serde_json::from_value(json!({
            "mode": "form", "message": message,
            "requestedSchema": { "type": "object", "properties": { "sure": { "type": "boolean" } } },
        }))
        .unwrap()
    }

    #[test]
    fn a_question_during_a_call_is_stored_and_answered_when_the_call_is_repeated() {
        let open_calls = Arc::new(OpenCalls::default());
        let first = call(Answers::new());
        let guard = open_calls.open(first.clone());
        assert_eq!(open_calls.answer(&form("Sure?")).action, ElicitationAction::Cancel);
        let asked = first.asked();
        assert_eq!(asked[0].message, "Sure?");
        drop(guard);
        let answer = json!({ "action": "accept", "content": { "sure": true } });
        let answers = [(asked[0].key.clone(), answer)].into();
        let second = call(answers);
        let _guard = open_calls.open(second.clone());
        let given = open_calls.answer(&form("Sure?"));
        assert_eq!(given.action, ElicitationAction::Accept);
        assert_eq!(given.content, Some(json!({ "sure": true })));
        assert_eq!(open_calls.answer(&form("Really?")).action, ElicitationAction::Cancel);
        assert_eq!(second.asked().len(), 1);
    }

    #[test]
    fn a_question_during_two_calls_belongs_to_neither() {
        let open_calls = Arc::new(OpenCalls::default());
        let one = call(Answers::new());
        let two = call(Answers::new());
        let _guards = (open_calls.open(one.clone()), open_calls.open(two.clone()));
        assert!(!open_calls.goes_one_by_one());
        assert_eq!(open_calls.answer(&form("Sure?")).action, ElicitationAction::Cancel);
        assert!(one.asked().is_empty() && two.asked().is_empty() && open_calls.goes_one_by_one());
    }

    #[test]
    fn a_form_for_a_password_is_declined_and_a_look_alike_address_shows_its_letters() {
        let asked = read(
            &json!({ "inputRequests": {
                "a": { "method": "elicitation/create", "params": {
                    "message": "Log in", "requestedSchema": {
                        "type": "object", "properties": { "password": { "type": "string" } } } } },
                "b": { "method": "elicitation/create", "params": {
                    "mode": "url", "message": "Log in", "url": "https://b\u{e4}nk.example/login?x=1" } },
                "c": { "method": "elicitation/create", "params": {
                    "mode": "url", "message": "Log in", "url": "javascript:alert(1)" } },
            }, "requestState": "s" }),
            &Secrets::default(),
        )
        .unwrap();
        assert_eq!(asked.settled.keys().collect::<Vec<_>>(), ["a", "c"]);
        let Wants::Url { url } = &asked.questions[0].wants else { panic!("{asked:?}") };
        assert_eq!(url, "https://xn--bnk-qla.example/login?x=1");
    }

    #[test]
    fn questions_that_cannot_be_asked_or_stored_are_refused() {
        let mut secrets = Secrets::default();
        secrets.add("s3cret-token");
        for (answer, reason) in [
            (json!({}), "no question"),
            (json!({ "requestState": "with s3cret-token" }), "secret"),
            (
                json!({ "inputRequests": { "q": { "method": "sampling/createMessage" } } }),
                "sampling",
            ),
        ] {
            let error_text = read(&answer, &secrets).unwrap_err().to_string();
            assert!(error_text.contains(reason), "{error_text}");
        }
    }
}
