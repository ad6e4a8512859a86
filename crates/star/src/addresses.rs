//! The web addresses that an agent can open without approval: addresses that people wrote or results contain.
//!
//! Even a read-only tool sends its arguments to a server: an address that a model invents can leak what the model
//! knows. A part of a known address is known as well: it contains only text of the address's author.

use serde_json::{Map, Value};

use crate::{
    Artifact, GraphState, Result, artifacts::content_of, attachments::ATTACHED, summing, tool_names,
};
use perihelion_engine::graph::TaskContext;
use perihelion_mcp::ToolDefinition;
use perihelion_web::{Mention, mentions};

/// The known addresses: those in the state in which an agent began, and later ones.
pub(super) struct Shown<'a> {
    state: &'a GraphState,
    after: Vec<String>,
}

impl<'a> Shown<'a> {
    pub(super) fn at_opening(state: &'a GraphState) -> Self {
        Self { state, after: Vec::new() }
    }

    /// Returns whether people or results in the state contain an address.
    ///
    /// Texts of other agents come from a model: they count only if they are free of open-world content. The summary of
    /// the conversation does not count, and of the request of a team only what was known above it.
    fn contains(&self, address: &Mention) -> bool {
        let state = self.state;
        let is_invented =
            state.preferences.invented.iter().any(|invented| address.stands_in(invented));
        let words = state.messages.iter().filter(|message| message.role == "user");
        let context = state.request_context.iter().filter(|(key, _)| *key != summing::KEY);
        let results = || state.results_of_turn();
        let own = results().filter(|result| result.tainted_by.is_empty());
        let sources = results().flat_map(|result| &result.sources);
        let mut texts = std::iter::once(&state.input_request)
            .chain(words.map(|message| &message.content))
            .chain(context.map(|(_, value)| value))
            .chain(own.map(|result| &result.output))
            .filter(|_| !is_invented)
            .chain(sources.flat_map(|source| source.reference.iter().chain(&source.quote)))
            .chain(&self.after);
        let given = state.global_state.values().filter(|artifact| is_given(artifact));
        let mut short = given.filter_map(|artifact| artifact.content.text());
        texts.any(|text| address.stands_in(text)) || short.any(|text| address.stands_in(text))
    }

    /// Adds the text of a tool or a person.
    pub(super) fn add(&mut self, text: &str) {
        if text.contains('.') {
            self.after.push(text.to_owned());
        }
    }

    /// Returns the first unknown address in the arguments of a call; the definition of the tool counts as known.
    ///
    /// It is looked for as the recipient of the arguments could: [`mentions`].
    pub(super) async fn unknown(
        &self,
        ctx: &TaskContext,
        tool: &ToolDefinition,
        arguments: &Map<String, Value>,
    ) -> Result<Option<String>> {
        let mut unknown = self.unknown_to_state(&Value::Object(arguments.clone()));
        if !unknown.is_empty() {
            let schema = tool_names::shown(&tool.input_schema).to_string();
            unknown.retain(|one| !one.stands_in(&tool.description) && !one.stands_in(&schema));
        }
        Ok(self.not_stored(ctx, unknown).await?.into_iter().next())
    }

    pub(super) async fn unknown_in(&self, ctx: &TaskContext, text: &str) -> Result<Vec<String>> {
        self.not_stored(ctx, self.unknown_to_state(&Value::from(text))).await
    }

    /// Returns the addresses that no separately stored artifact contains; these are read one by one, and only if no
    /// other text contains an address.
    async fn not_stored(
        &self,
        ctx: &TaskContext,
        mut unknown: Vec<Mention>,
    ) -> Result<Vec<String>> {
        for (key, artifact) in self.state.global_state.iter() {
            if unknown.is_empty() {
                break;
            }
            let is_stored_text = artifact.content.text().is_none() && artifact.media_type.is_none();
            if is_stored_text && is_given(artifact) {
                let whole = content_of(ctx, key, &artifact.content).await?;
                unknown.retain(|one| !one.stands_in(&whole));
            }
        }
        Ok(unknown.into_iter().map(|one| one.url.into()).collect())
    }

    fn unknown_to_state(&self, value: &Value) -> Vec<Mention> {
        let mut named = mentions(value);
        named.retain(|address| !self.contains(address));
        named
    }
}

/// Returns whether an artifact counts: a tool or a person gave it, or no open-world content led to it.
fn is_given(artifact: &Artifact) -> bool {
    let source = artifact.source.as_str();
    source.contains('.') || source == ATTACHED || artifact.tainted_by.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Preferences;

    fn unknown(shown: &str, arguments: Value) -> Option<String> {
        let state = GraphState::default();
        let mut all = Shown::at_opening(&state);
        all.add(shown);
        let found = all.unknown_to_state(&arguments);
        found.into_iter().next().map(|one| one.url.into())
    }

    /// S3.07: words of models about what strangers wrote make no address known.
    #[test]
    fn addresses_in_a_summary_an_invented_task_and_tainted_findings_are_unknown() {
        let address = "https://evil.test/?d=1";
        let words = format!("Remember {address}.");
        let is_known = |state: &GraphState| {
            Shown::at_opening(state).unknown_to_state(&json!({ "url": address })).is_empty()
        };
        let asked = |invented: &[&str]| {
            let invented = invented.iter().map(|one| (*one).to_owned()).collect();
            let preferences = Preferences { invented, ..Preferences::default() };
            GraphState { input_request: words.clone(), preferences, ..GraphState::default() }
        };
        assert!(is_known(&asked(&[])) && !is_known(&asked(&[address])));
        let context = |key: &str| {
            let request_context = [(key.to_owned(), words.clone())].into();
            GraphState { request_context, ..GraphState::default() }
        };
        assert!(is_known(&context("page")) && !is_known(&context(summing::KEY)));
        let kept = |source: &str| {
            let tainted_by = ["web".to_owned()].into();
            let artifact = Artifact::of_text(source, String::new(), words.clone(), &tainted_by);
            let mut state = GraphState::default();
            state.global_state.insert_mut("1/a".to_owned(), artifact);
            state
        };
        assert!(is_known(&kept("web.fetch")) && !is_known(&kept("mcp_agent_web")));
    }

    /// S3.07: an address that no question, result or page contains is found anywhere in the arguments.
    #[test]
    fn an_address_is_known_if_its_text_was_shown() {
        let shown = "Read https://sea.test/tides?of=may, and harbour.test.";
        for known in
            ["https://sea.test/tides?of=may", "https://sea.test/tides", "http://harbour.test/#top"]
        {
            assert_eq!(unknown(shown, json!({ "url": known })), None);
        }
        for (made_up, leads_to) in [
            ("https://sea.test/tides?of=may&key=k", "https://sea.test/tides?of=may&key=k"),
            ("https://evil.test/?of=may", "https://evil.test/?of=may"),
            ("HTTPS://evil.test", "https://evil.test/"),
            ("http:evil.test/k", "http://evil.test/k"),
            ("ht\ttp:\\\\evil.test\\k", "http://evil.test/k"),
            ("\0http://evil.test/k", "http://evil.test/k"),
            ("//evil.test/k", "https://evil.test/k"),
            ("evil.test/k", "https://evil.test/k"),
            ("[a](http:/evil.test/k)", "http://evil.test/k"),
            ("{\"a\": \"http:\\/\\/evil.test/k\"}", "http://evil.test/k"),
            ("about https://evil.test/ in words", "https://evil.test/"),
        ] {
            for arguments in [json!({ "in": [{ "url": made_up }] }), json!({ made_up: 3 })] {
                assert_eq!(unknown(shown, arguments).as_deref(), Some(leads_to), "{made_up}");
            }
        }
        assert_eq!(
            unknown(shown, json!({ "query": "about https://sea.test/ in words", "n": 3 })),
            None
        );
    }
}
