//! Reads the answer to a tool call: text, structured content, and their problems.

use std::fmt::Display;

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ServerResult};
use serde_json::Value;

use super::elicitation;
use crate::configuration::ServerConfig;
use crate::transport::oauth::Access;
use crate::types::{Error, Reason, Reply, Result, TaskHandle, ToolOutcome, text};
use crate::{configuration::redact::Secrets, trust::hidden, types::schema::Checker};
use tokio_util::sync::CancellationToken;

/// Reads an answer, bounded, validated, and free of the server's own secrets.
pub(crate) fn read(
    tool: &str,
    result: ServerResult,
    max_bytes: usize,
    output: Option<&Checker>,
    secrets: &Secrets,
) -> Reply {
    // Back to JSON: one malformed block must not cost the whole answer, so blocks are read one by one.
    let Ok(answer) = serde_json::to_value(result) else {
        return Reply::Done(ToolOutcome::failed("the answer of the server cannot be read"));
    };
    let size = text::json_bytes(&answer);
    if size > max_bytes {
        return Reply::Done(too_large(tool, size, max_bytes));
    }
    match answer.get("resultType").and_then(Value::as_str) {
        Some("input_required") => match elicitation::read(&answer, secrets) {
            Ok(asked) => Reply::Asked { asked },
            Err(reason) => {
                Reply::Done(ToolOutcome::failed(format!("{tool} cannot continue: {reason}")))
            }
        },
        Some("task") => match task(&answer) {
            Some(task) => Reply::Task { task },
            None => Reply::Done(ToolOutcome::failed(format!("the task of {tool} has no id"))),
        },
        _ => Reply::Done(complete(tool, answer, output, secrets)),
    }
}

fn task(answer: &Value) -> Option<TaskHandle> {
    let number = |field: &str| answer.get(field).and_then(Value::as_u64);
    Some(TaskHandle {
        id: answer.get("taskId")?.as_str().filter(|id| !id.is_empty())?.to_owned(),
        poll_ms: number("pollIntervalMs"),
        ttl_ms: number("ttlMs"),
    })
}

pub(crate) fn complete(
    tool: &str,
    answer: Value,
    output: Option<&Checker>,
    secrets: &Secrets,
) -> ToolOutcome {
    let is_error = match answer.get("isError") {
        Some(Value::String(word)) => word.eq_ignore_ascii_case("true"),
        other => other.and_then(Value::as_bool).unwrap_or(false),
    };
    let structured = answer.get("structuredContent").cloned();
    let blocks = match answer.get("content") {
        Some(Value::Array(blocks)) => Some(blocks.as_slice()),
        Some(one @ (Value::String(_) | Value::Object(_))) => Some(std::slice::from_ref(one)),
        _ => None,
    };
    if structured.is_none() && blocks.is_none() {
        let words = text::cut(&text::one_line(&secrets.redact(&answer.to_string())), 300);
        return ToolOutcome::failed(format!(
            "the server did not answer with the result of a tool: {tool}: {words}"
        ));
    }
    // A failure need not have the structure of a success.
    if !is_error && let Some(output) = output {
        let complaint = match &structured {
            Some(structured) => output.check(structured).err().map(|_| {
                // Complaints are cut: they are made of what has no secrets in it.
                let shown = secrets.redact_json(structured.clone());
                output
                    .check(&shown)
                    .map_or_else(|error| error.to_string(), |()| "it does not fit".to_owned())
            }),
            None => Some("there is no structured content".to_owned()),
        };
        if let Some(complaint) = complaint {
            return ToolOutcome::failed(format!(
                "the result of {tool} breaks the tool's own output schema and was left out: {complaint}"
            ));
        }
    }
    let texts: Vec<String> =
        blocks.into_iter().flatten().map(|block| text_of(block, secrets)).collect();
    let mut text = texts.join("\n");
    if texts.is_empty()
        && let Some(structured) = &structured
    {
        text = structured.to_string();
    }
    ToolOutcome {
        is_error,
        text: hidden::shown(&secrets.redact(&text)),
        structured: structured
            .map(|structured| hidden::shown_json(secrets.redact_json(structured))),
        via: None,
    }
}

/// Returns the text of a block, or a description in brackets.
fn text_of(block: &Value, secrets: &Secrets) -> String {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    // What is cut first would leave the beginning of a secret that is not known by it.
    let short = |text: &str| text::cut(&text::one_line(&secrets.redact(text)), 300);
    match (field("type"), block.get("text").unwrap_or(block)) {
        (Some("text") | None, Value::String(text)) => text.clone(),
        (Some("text") | None, Value::Number(number)) => number.to_string(),
        (Some(kind @ ("image" | "audio")), _) => {
            let size = field("data").map_or(0, |data| data.len() / 4 * 3);
            let mime = short(field("mimeType").unwrap_or("of unknown type"));
            format!("[{kind}: {mime}, about {size} bytes, left out]")
        }
        (Some("resource"), _) => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            let uri = short(resource.get("uri").and_then(Value::as_str).unwrap_or_default());
            match resource.get("text").and_then(Value::as_str) {
                Some(text) => format!("[resource: {uri}]\n{text}"),
                None => format!("[resource: {uri}, binary, left out]"),
            }
        }
        (Some("resource_link"), _) => {
            let name = short(field("name").unwrap_or_default());
            format!("[link to a resource: {name} {}]", short(field("uri").unwrap_or_default()))
        }
        (Some(kind), _) => format!("[content of a kind not known here, left out: {}]", short(kind)),
        (None, _) => "[malformed content, left out]".to_owned(),
    }
}

pub(super) fn too_large(tool: &str, size: impl Display, max_bytes: usize) -> ToolOutcome {
    ToolOutcome::failed(format!(
        "the result of {tool} is too large ({size} bytes, at most {max_bytes}); \
         ask for less, or raise max_result_bytes"
    ))
}

/// Longer reasons are dumps.
pub(crate) const REASON_CHARS: usize = 2000;

/// The call of a tool, and what of its server has a part in it.
pub(crate) struct Call<'a> {
    pub config: &'a ServerConfig,
    pub tool: &'a str,
    /// The source of the server's tokens, if there is one.
    pub access: Option<&'a Access>,
    pub is_bundled: bool,
    pub closed: &'a CancellationToken,
}

impl Call<'_> {
    pub fn not_sent(&self, reason: impl ToString) -> Error {
        let (server, tool, reason) = self.parts(&reason.to_string());
        Error::NotSent { server, tool, reason }
    }

    pub fn unknown(&self, reason: &str) -> Error {
        let (server, tool, reason) = self.parts(reason);
        Error::Unknown { server, tool, reason }
    }

    pub fn refused(&self, reason: &str) -> Error {
        let (server, tool, reason) = self.parts(reason);
        Error::Refused { server, tool, reason }
    }

    fn parts(&self, reason: &str) -> (String, String, Reason) {
        (self.config.name.clone(), self.tool.to_owned(), self.clean(reason).into())
    }

    fn clean(&self, text: &str) -> String {
        text::cut(&hidden::shown(&self.config.secrets.redact(text)), REASON_CHARS)
    }
}

/// An error that rejects the request itself means that the tool did not run; any other is the tool's own.
pub(super) fn rpc_error(call: &Call<'_>, error: &ErrorData) -> Result<ToolOutcome> {
    let message = text::one_line(&error.message);
    let rejects = matches!(
        error.code,
        ErrorCode::PARSE_ERROR
            | ErrorCode::INVALID_REQUEST
            | ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::INVALID_PARAMS
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH
    );
    if rejects {
        return Err(call.refused(&format!("{message} (code {})", error.code.0)));
    }
    let text = format!("the server reported an error (code {}): {message}", error.code.0);
    Ok(ToolOutcome::failed(call.clean(&text)))
}

#[cfg(test)]
mod tests {
    use rmcp::model::CustomResult;
    use serde_json::json;

    use super::*;
    use crate::types::schema;

    fn outcome(answer: Value) -> ToolOutcome {
        let result = ServerResult::CustomResult(CustomResult::new(answer));
        match read("look", result, 1000, None, &Secrets::default()) {
            Reply::Done(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_kind_of_content_leaves_words() {
        let outcome = outcome(json!({"content": [
            {"type": "text", "text": "seen:"},
            {"type": "image", "mimeType": "image/png", "data": "AAAAAAAA"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource_link", "name": "b", "uri": "file:///b"},
            {"type": "hologram"}, [], "bare", {"text": "untyped"}, {"type": "text", "text": 4.5}
        ]}));
        assert!(!outcome.is_error);
        assert_eq!(
            outcome.text,
            "seen:\n[image: image/png, about 6 bytes, left out]\n[resource: file:///a]\ninside\n\
             [link to a resource: b file:///b]\n[content of a kind not known here, left out: hologram]\n\
             [malformed content, left out]\nbare\nuntyped\n4.5"
        );
    }

    #[test]
    fn content_that_is_no_list_and_an_error_in_words_are_understood() {
        for content in [json!("full"), json!({"type": "text", "text": "full"})] {
            let outcome = outcome(json!({"content": content, "isError": "true"}));
            assert_eq!((outcome.text.as_str(), outcome.is_error), ("full", true));
        }
    }

    #[test]
    fn a_shortened_text_contains_no_part_of_a_secret() {
        let mut secrets = Secrets::default();
        secrets.add("s3cret-token");
        let uri = format!("file:///{}s3cret-token/and/more", "x".repeat(288));
        let answer = json!({"content": [{"type": "resource_link", "name": "b", "uri": uri}]});
        let text = complete("look", answer, None, &secrets).text;
        assert!(!text.contains("s3c") && text.contains("x[re…"), "{text}");

        let output = schema::compile(std::sync::Arc::new(json!({"type": "integer"}))).unwrap();
        let words = format!("{}s3cret-token", "x".repeat(290));
        let answer = json!({"structuredContent": words});
        let text = complete("look", answer, Some(&output), &secrets).text;
        assert!(text.contains("xxx") && !text.contains("s3c"), "{text}");
    }

    /// X6
    #[test]
    fn invisible_characters_are_written_out() {
        let hidden = "a\u{200b}b\u{ad}c\u{3164}d\u{fe0f}\u{1b}]52;c;eA==\u{7}";
        let outcome = outcome(json!({
            "content": [{"type": "text", "text": hidden}], "structuredContent": {"k": hidden},
        }));
        let written = "a\\u{200b}b\\u{ad}c\\u{3164}d\\u{fe0f}\\u{1b}]52;c;eA==\\u{7}";
        assert_eq!(outcome.text, written);
        assert_eq!(outcome.structured, Some(json!({"k": written})));
    }

    #[test]
    fn structured_content_alone_is_its_own_text() {
        let outcome = outcome(json!({"structuredContent": {"a": 1}}));
        assert_eq!(outcome.text, r#"{"a":1}"#);
        assert_eq!(outcome.structured, Some(json!({"a": 1})));
    }

    #[test]
    fn an_unsupported_question_and_an_unexpected_answer_are_named_errors() {
        let asked = outcome(json!({
            "resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}
        }));
        assert!(asked.is_error && asked.text.contains("roots/list"), "{}", asked.text);
        let other = outcome(json!({"resources": []}));
        assert!(other.is_error && other.text.contains("did not answer"), "{}", other.text);
    }
}
