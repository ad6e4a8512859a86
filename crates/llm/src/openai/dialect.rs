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

impl Forms {
    fn simplest(self, other: Self) -> Self {
        Self {
            json: self.json.max(other.json),
            completion_tokens: self.completion_tokens || other.completion_tokens,
            stream_options: self.stream_options && other.stream_options,
            temperature: self.temperature && other.temperature,
            bounds: self.bounds && other.bounds,
            plain_tools: self.plain_tools || other.plain_tools,
        }
    }
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

    /// Returns the forms in which a request is sent first.
    pub(super) fn forms(&self, request: &ChatRequest) -> Forms {
        let mut forms = *self.forms.lock();
        let schema = request.format.as_ref().map(|format| &format.schema);
        let is_any = request.manner.is_foreign
            && schema.is_some_and(|schema| schema.get("properties").is_none());
        if is_any && self.mode == JsonMode::Auto {
            forms.json = forms.json.max(JsonForm::Object);
        }
        forms
    }

    /// Learns from a refusal; returns simpler forms if the same request is worth sending in them.
    ///
    /// Forms only become simpler, for all later requests, so a request is repeated a bounded number of times. Findings
    /// about a caller's schema are valid for its own call.
    pub(super) fn learn(
        &self,
        used: Forms,
        request: &ChatRequest,
        status: u16,
        message: &str,
    ) -> Option<Forms> {
        let simpler = self.simpler(used, request, status, &message.to_lowercase())?;
        let mut known = self.forms.lock();
        let learned = if request.manner.is_foreign {
            Forms { json: known.json, bounds: known.bounds, ..simpler }
        } else {
            simpler
        };
        *known = known.simplest(learned);
        Some(simpler)
    }

    fn simpler(
        &self,
        used: Forms,
        request: &ChatRequest,
        status: u16,
        message: &str,
    ) -> Option<Forms> {
        let asked_json = request.format.is_some();
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let is_grammar = names(&["grammar", "schema conversion", "json schema error"]);
        if !(matches!(status, 400 | 404 | 415 | 422 | 501) || status == 500 && is_grammar) {
            return None;
        }
        if used.stream_options && names(&["stream_options", "include_usage"]) {
            return Some(Forms { stream_options: false, ..used });
        }
        if !used.completion_tokens && names(&["max_completion_tokens"]) {
            return Some(Forms { completion_tokens: true, ..used });
        }
        if asked_json
            && used.bounds
            && names(&["maxlength", "maxitems", "repetitions", "too many states"])
        {
            return Some(Forms { bounds: false, ..used });
        }
        if !asked_json && !request.tools.is_empty() && !used.plain_tools && is_grammar {
            return Some(Forms { plain_tools: true, ..used });
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
            return Some(Forms { json: used.json.simpler(), ..used });
        }
        let is_varied = request.manner.is_varied;
        let is_refused = names(&["temperature"]) && (is_varied || names(&["support"]));
        (used.temperature && is_refused).then_some(Forms { temperature: false, ..used })
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

    fn learn(dialect: &Dialect, request: &ChatRequest, status: u16, message: &str) -> bool {
        dialect.learn(dialect.forms(request), request, status, message).is_some()
    }

    fn known(dialect: &Dialect) -> JsonForm {
        dialect.forms(&request(true)).json
    }

    #[test]
    fn a_refused_schema_leads_to_an_object_and_then_to_the_prompt_alone() {
        let dialect = Dialect::new(JsonMode::Auto, "m");
        assert!(learn(&dialect, &request(true), 400, "unknown parameter: response_format"));
        assert_eq!(known(&dialect), JsonForm::Object);
        assert!(learn(&dialect, &request(true), 400, "response_format is not supported"));
        assert_eq!(known(&dialect), JsonForm::Prompt);
        assert!(!learn(&dialect, &request(true), 400, "response_format is not supported"));
    }

    #[test]
    fn two_calls_that_learn_the_same_at_once_step_down_once() {
        let dialect = Dialect::new(JsonMode::Auto, "m");
        let used = dialect.forms(&request(true));
        assert!(dialect.learn(used, &request(true), 400, "json_schema").is_some());
        assert!(dialect.learn(used, &request(true), 400, "json_schema").is_some());
        assert_eq!(known(&dialect), JsonForm::Object);
    }

    #[test]
    fn a_refused_schema_of_a_caller_is_simplified_for_its_own_call() {
        let dialect = Dialect::new(JsonMode::Auto, "m");
        let mut foreign = request(true);
        foreign.manner.is_foreign = true;
        assert_eq!(dialect.forms(&foreign).json, JsonForm::Object, "it describes no field");
        foreign.format.as_mut().unwrap().schema = serde_json::json!({ "properties": {} });
        let used = dialect.forms(&foreign);
        assert_eq!(used.json, JsonForm::Schema);
        let simpler = dialect.learn(used, &foreign, 400, "invalid schema for response_format");
        assert_eq!(simpler.unwrap().json, JsonForm::Object);
        let simpler = dialect.learn(simpler.unwrap(), &foreign, 400, "unknown: stream_options");
        assert_eq!(simpler.unwrap().json, JsonForm::Object);
        let forms = dialect.forms(&request(true));
        assert_eq!((forms.json, forms.stream_options), (JsonForm::Schema, false));
    }

    #[test]
    fn a_response_form_set_by_the_operator_is_preserved() {
        let dialect = Dialect::new(JsonMode::JsonSchema, "m");
        assert!(!learn(&dialect, &request(true), 400, "json_schema"));
        assert_eq!(known(&dialect), JsonForm::Schema);
    }

    #[test]
    fn other_refusals_teach_nothing() {
        let dialect = Dialect::new(JsonMode::Auto, "m");
        assert!(!learn(&dialect, &request(true), 401, "json_schema"));
        assert!(!learn(&dialect, &request(true), 400, "context length exceeded"));
        assert!(!learn(&dialect, &request(false), 400, "json_schema"));
    }
}
