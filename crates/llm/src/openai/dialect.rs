//! The features that an endpoint does not understand, remembered while the process lives.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::ChatRequest;
use perihelion_settings::config::JsonMode;

/// How a JSON answer is asked for in one request, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JsonForm {
    Schema,
    Object,
    Prompt,
}

impl JsonForm {
    fn simpler(self) -> Self {
        match self {
            Self::Schema => Self::Object,
            Self::Object | Self::Prompt => Self::Prompt,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Forms {
    pub json: JsonForm,
    /// `max_completion_tokens` in place of `max_tokens`.
    pub completion_tokens: bool,
    pub stream_options: bool,
    pub temperature: bool,
    /// Schemas say how long texts and lists may be.
    pub bounds: bool,
    /// Schemas of tools are reduced to names and types.
    pub plain_tools: bool,
}

/// The forms that an endpoint's model is known to accept so far; they only ever get simpler.
pub(super) struct Dialect {
    mode: JsonMode,
    forms: Mutex<Forms>,
    expects_reasoning: AtomicBool,
    /// An answer came whole though a stream was asked for.
    ignores_streaming: AtomicBool,
}

/// Parts of the names of models whose chat template begins their reasoning, in lower case.
const REASONING: [&str; 5] = ["deepseek-r1", "r1-distill", "qwq", "thinking", "reasoner"];

impl Dialect {
    pub(super) fn new(mode: JsonMode, model: &str) -> Self {
        let model = model.to_lowercase();
        let expects_reasoning = REASONING.iter().any(|name| model.contains(name));
        let json = match mode {
            JsonMode::Auto | JsonMode::JsonSchema => JsonForm::Schema,
            JsonMode::JsonObject => JsonForm::Object,
            JsonMode::Text => JsonForm::Prompt,
        };
        let forms = Forms {
            json,
            completion_tokens: false,
            stream_options: true,
            temperature: true,
            bounds: true,
            plain_tools: false,
        };
        let expects_reasoning = AtomicBool::new(expects_reasoning);
        let ignores_streaming = AtomicBool::new(false);
        Self { mode, forms: Mutex::new(forms), expects_reasoning, ignores_streaming }
    }

    pub(super) fn ignores_streaming(&self) -> bool {
        self.ignores_streaming.load(Ordering::Relaxed)
    }

    pub(super) fn ignore_streaming(&self) {
        self.ignores_streaming.store(true, Ordering::Relaxed);
    }

    /// Returns whether answers are likely to begin with reasoning that has only an end.
    pub(super) fn expects_reasoning(&self) -> bool {
        self.expects_reasoning.load(Ordering::Relaxed)
    }

    /// Notes that an answer began so.
    pub(super) fn expect_reasoning(&self) {
        self.expects_reasoning.store(true, Ordering::Relaxed);
    }

    pub(super) fn forms(&self) -> Forms {
        *self.forms.lock()
    }

    /// Learns from a refusal; returns whether the same request is worth sending in a simpler form.
    ///
    /// Each lesson simplifies the requests permanently, so a request is repeated a bounded number of times.
    pub(super) fn learn(
        &self,
        used: Forms,
        request: &ChatRequest,
        status: u16,
        message: &str,
    ) -> bool {
        let asked_json = request.format.is_some();
        let message = message.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_grammar = names(&["grammar", "schema conversion", "json schema error"]);
        if !(matches!(status, 400 | 404 | 415 | 422 | 501) || status == 500 && is_grammar) {
            return false;
        }

        let mut known = self.forms.lock();
        if used.stream_options && names(&["stream_options", "include_usage"]) {
            known.stream_options = false;
            return true;
        }
        if !used.completion_tokens && names(&["max_completion_tokens"]) {
            known.completion_tokens = true;
            return true;
        }
        if asked_json
            && used.bounds
            && names(&["maxlength", "maxitems", "repetitions", "too many states"])
        {
            known.bounds = false;
            return true;
        }
        if !asked_json && !request.tools.is_empty() && !used.plain_tools && is_grammar {
            known.plain_tools = true;
            return true;
        }
        let json_words = [
            "response_format",
            "json_schema",
            "json_object",
            "structured output",
            "responsejsonschema",
            "tool_choice",
            "grammar",
            "schema conversion",
            "json schema error",
            "guided",
        ];
        if asked_json
            && self.mode == JsonMode::Auto
            && used.json < JsonForm::Prompt
            && names(&json_words)
        {
            known.json = known.json.max(used.json.simpler());
            return true;
        }
        let is_varied = request.manner.is_varied;
        if used.temperature && names(&["temperature"]) && (is_varied || names(&["support"])) {
            known.temperature = false;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutputFormat, Role};

    fn request(asked_json: bool) -> ChatRequest {
        let format = OutputFormat { name: "n".into(), schema: serde_json::json!({}) };
        let format = asked_json.then_some(format);
        ChatRequest { format, ..ChatRequest::new(Role::Agent, "t", vec![]) }
    }

    #[test]
    fn a_refused_schema_leads_to_an_object_and_then_to_the_prompt_alone() {
        let dialect = Dialect::new(JsonMode::Auto, "m");
        assert!(dialect.learn(
            dialect.forms(),
            &request(true),
            400,
            "unknown parameter: response_format"
        ));
        assert_eq!(dialect.forms().json, JsonForm::Object);
        assert!(dialect.learn(
            dialect.forms(),
            &request(true),
            400,
            "response_format is not supported"
        ));
        assert_eq!(dialect.forms().json, JsonForm::Prompt);
        assert!(!dialect.learn(
            dialect.forms(),
            &request(true),
            400,
            "response_format is not supported"
        ));
    }

    #[test]
    fn two_calls_that_learn_the_same_at_once_step_down_once() {
        let dialect = Dialect::new(JsonMode::Auto, "m");
        let used = dialect.forms();
        assert!(dialect.learn(used, &request(true), 400, "json_schema"));
        assert!(dialect.learn(used, &request(true), 400, "json_schema"));
        assert_eq!(dialect.forms().json, JsonForm::Object);
    }

    #[test]
    fn a_response_form_set_by_the_operator_is_preserved() {
        let dialect = Dialect::new(JsonMode::JsonSchema, "m");
        assert!(!dialect.learn(dialect.forms(), &request(true), 400, "json_schema"));
        assert_eq!(dialect.forms().json, JsonForm::Schema);
    }

    #[test]
    fn other_refusals_teach_nothing() {
        let dialect = Dialect::new(JsonMode::Auto, "m");
        assert!(!dialect.learn(dialect.forms(), &request(true), 401, "json_schema"));
        assert!(!dialect.learn(dialect.forms(), &request(true), 400, "context length exceeded"));
        assert!(!dialect.learn(dialect.forms(), &request(false), 400, "json_schema"));
    }
}
