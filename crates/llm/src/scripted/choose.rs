//! Finds the reply to a request: the first rule that matches.

use std::collections::HashMap;

use axum::http::HeaderMap;
use serde_json::Value;

use super::script::{Reply, Rule, Script};

#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    /// `x-perihelion-role`; empty if it was not sent.
    pub role: String,
    /// `x-perihelion-thread`; empty if it was not sent.
    pub thread: String,
    /// `x-perihelion-agent`, if it was sent.
    pub agent: Option<String>,
    /// `x-perihelion-stage`, if it was sent.
    pub stage: Option<String>,
    /// All headers, names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Value,
    /// Which call of this role and agent on this thread it is, from 1.
    pub nth: u64,
}

impl RecordedRequest {
    pub(super) fn new(headers: &HeaderMap, body: Value) -> Self {
        let headers: HashMap<String, String> = headers
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let header = |name: &str| headers.get(name).cloned();
        Self {
            role: header("x-perihelion-role").unwrap_or_default(),
            thread: header("x-perihelion-thread").unwrap_or_default(),
            agent: header("x-perihelion-agent"),
            stage: header("x-perihelion-stage"),
            headers,
            body,
            nth: 0,
        }
    }

    pub fn texts(&self) -> Vec<&str> {
        self.messages().iter().map(text_of).collect()
    }

    /// Returns the last message's text; empty without one.
    pub fn last_text(&self) -> &str {
        self.messages().last().map_or("", text_of)
    }

    pub fn tool_results(&self) -> usize {
        self.messages().iter().filter(|message| message["role"] == "tool").count()
    }

    pub fn contains(&self, text: &str) -> bool {
        self.messages().iter().any(|message| text_of(message).contains(text))
    }

    pub fn is_streamed(&self) -> bool {
        self.body["stream"] == true
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

fn text_of(message: &Value) -> &str {
    let content = &message["content"];
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default()
}

#[derive(Default)]
pub(super) struct Counts {
    calls: HashMap<(String, Option<String>, String), u64>,
    uses: HashMap<usize, u64>,
}

impl Counts {
    pub(super) fn number(&mut self, request: &mut RecordedRequest) {
        let key = (request.role.clone(), request.agent.clone(), request.thread.clone());
        let count = self.calls.entry(key).or_default();
        *count += 1;
        request.nth = *count;
    }

    /// Returns the reply of the first rule that matches, and counts the use.
    pub(super) fn choose(&mut self, script: &Script, request: &RecordedRequest) -> Option<Reply> {
        if let Some(reply) = script.responder.as_ref().and_then(|respond| respond(request)) {
            return Some(reply);
        }
        let (index, rule) = script.rules.iter().enumerate().find(|(index, rule)| {
            let uses = self.uses.get(index).copied().unwrap_or_default();
            rule.times.is_none_or(|times| uses < times) && matches(rule, request)
        })?;
        *self.uses.entry(index).or_default() += 1;
        Some(rule.reply.clone())
    }
}

fn matches(rule: &Rule, request: &RecordedRequest) -> bool {
    let format = request.body["response_format"]["type"].as_str();
    rule.role.is_none_or(|role| role.as_str() == request.role)
        && rule.agent.as_ref().is_none_or(|agent| Some(agent) == request.agent.as_ref())
        && rule.stage.as_ref().is_none_or(|stage| Some(stage) == request.stage.as_ref())
        && rule.contains.iter().all(|text| request.contains(text))
        && rule.last_contains.iter().all(|text| request.last_text().contains(text))
        && !rule.not_contains.iter().any(|text| request.contains(text))
        && rule.after_tool_results.is_none_or(|count| request.tool_results() == count)
        && rule.response_format.as_deref().is_none_or(|kind| Some(kind) == format)
        && rule.nth.is_none_or(|nth| nth == request.nth)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Role;

    fn request(role: &str, agent: Option<&str>, messages: Value) -> RecordedRequest {
        let mut headers = HeaderMap::new();
        headers.insert("x-perihelion-role", role.parse().unwrap());
        if let Some(agent) = agent {
            headers.insert("x-perihelion-agent", agent.parse().unwrap());
        }
        RecordedRequest::new(&headers, json!({ "messages": messages }))
    }

    fn answer(
        counts: &mut Counts,
        script: &Script,
        mut request: RecordedRequest,
    ) -> Option<String> {
        counts.number(&mut request);
        let reply = counts.choose(script, &request)?;
        Some(reply.content?.as_str()?.to_owned())
    }

    #[test]
    fn the_first_rule_that_matches_gives_the_reply() {
        let script = Script::new()
            .rule(Rule::new(Reply::text("files")).role(Role::Agent).agent("files"))
            .rule(Rule::new(Reply::text("second")).role(Role::Qa).nth(2))
            .rule(Rule::new(Reply::text("once")).role(Role::Qa).times(1))
            .rule(Rule::new(Reply::text("after")).after_tool_results(1))
            .rule(Rule::new(Reply::text("both")).contains("a").contains("b").not_contains("c"))
            .rule(Rule::new(Reply::text("last")).last_contains("z"));
        let mut counts = Counts::default();
        let words = |text: &str| json!([{ "role": "user", "content": text }]);
        let mut ask =
            |role, agent, messages| answer(&mut counts, &script, request(role, agent, messages));

        assert_eq!(ask("agent", Some("files"), words("a b")).as_deref(), Some("files"));
        assert_eq!(ask("qa", None, words("")).as_deref(), Some("once"));
        assert_eq!(ask("qa", None, words("")).as_deref(), Some("second"));
        assert_eq!(ask("qa", None, words("")), None);
        assert_eq!(ask("agent", None, words("b a")).as_deref(), Some("both"));
        assert_eq!(ask("agent", None, words("a b c z")).as_deref(), Some("last"));
        let tool = json!([{ "role": "user", "content": "x" }, { "role": "tool", "content": "y" }]);
        assert_eq!(ask("agent", None, tool).as_deref(), Some("after"));
    }
}
