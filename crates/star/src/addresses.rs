//! The web addresses that an agent can open without approval: addresses that people wrote or results contain.
//!
//! Even a read-only tool sends its arguments to a server: an address that a model invents can leak what the model
//! knows. A part of a known address is known as well: it contains only text of the address's author.

use serde_json::{Map, Value};

use crate::{GraphState, Result, artifacts::content_of, tool_names};
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
    /// Texts of other agents come from a model: they count only if they are free of open-world content.
    fn contains(&self, address: &Mention) -> bool {
        let state = self.state;
        let words = state.messages.iter().filter(|message| message.role == "user");
        let results = || state.results_of_turn();
        let own = results().filter(|result| result.tainted_by.is_empty());
        let sources = results().flat_map(|result| &result.sources);
        let mut texts = std::iter::once(&state.input_request)
            .chain(words.map(|message| &message.content))
            .chain(state.request_context.values())
            .chain(own.map(|result| &result.output))
            .chain(sources.flat_map(|source| source.reference.iter().chain(&source.quote)))
            .chain(&self.after);
        let mut short = state.global_state.values().filter_map(|artifact| artifact.content.text());
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
    /// It is looked for as the recipient of the arguments could: [`mentions`]. Separately stored artifacts are read one
    /// by one, and only if no other text contains an address.
    pub(super) async fn unknown(
        &self,
        ctx: &TaskContext,
        tool: &ToolDefinition,
        arguments: &Map<String, Value>,
    ) -> Result<Option<String>> {
        let mut unknown = self.unknown_to_state(arguments);
        if unknown.is_empty() {
            return Ok(None);
        }
        let schema = tool_names::shown(&tool.input_schema).to_string();
        unknown.retain(|one| !one.stands_in(&tool.description) && !one.stands_in(&schema));
        for (key, artifact) in self.state.global_state.iter() {
            if unknown.is_empty() {
                return Ok(None);
            }
            if artifact.content.text().is_none() && artifact.media_type.is_none() {
                let whole = content_of(ctx, key, &artifact.content).await?;
                unknown.retain(|one| !one.stands_in(&whole));
            }
        }
        Ok(unknown.into_iter().next().map(|one| one.url.into()))
    }

    fn unknown_to_state(&self, arguments: &Map<String, Value>) -> Vec<Mention> {
        let mut named = mentions(&Value::Object(arguments.clone()));
        named.retain(|address| !self.contains(address));
        named
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unknown(shown: &str, arguments: Value) -> Option<String> {
        let state = GraphState::default();
        let mut all = Shown::at_opening(&state);
        all.add(shown);
        let found = all.unknown_to_state(arguments.as_object().unwrap());
        found.into_iter().next().map(|one| one.url.into())
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
