//! Which addresses of the web an agent may go to unasked: those that stood in what people said or in what was found.
//!
//! A tool that only reads still tells the one it reads from what it asks for: an address made up by a model can carry away what the model
//! knows. Part of an address that was shown is shown as well: it says nothing that its owner did not write.

use serde_json::{Map, Value};

use super::artifacts::content_of;
use super::state::GraphState;
use perihelion_engine::graph::{NodeError, TaskContext};

/// What was shown of addresses so far: by the state in which an agent began, and by what came after.
pub(super) struct Shown<'a> {
    state: &'a GraphState,
    after: Vec<String>,
}

impl<'a> Shown<'a> {
    pub(super) fn at_opening(state: &'a GraphState) -> Self {
        Self { state, after: Vec::new() }
    }

    /// Tells whether an address stood in what people said or what was found, as far as the state holds it.
    ///
    /// The words of other agents are a model's: theirs count only where nothing of the open world stands behind them.
    fn contains(&self, address: &str) -> bool {
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
        texts.any(|text| text.contains(address)) || short.any(|text| text.contains(address))
    }

    /// Adds what a tool or a person said.
    pub(super) fn add(&mut self, text: &str) {
        if text.contains('.') {
            self.after.push(text.to_owned());
        }
    }

    /// Returns the first argument that is an address which stood nowhere.
    ///
    /// Artifacts that are kept beside the state are read one by one, and only where nothing else shows an address.
    ///
    /// # Errors
    /// [`NodeError`] when an artifact cannot be read.
    pub(super) async fn unknown(
        &self,
        ctx: &TaskContext,
        arguments: &Map<String, Value>,
    ) -> Result<Option<String>, NodeError> {
        let mut unknown = Vec::new();
        self.unknown_to_state(arguments, &mut unknown);
        for (key, artifact) in self.state.global_state.iter() {
            if unknown.is_empty() {
                return Ok(None);
            }
            if artifact.content.text().is_none() && artifact.media_type.is_none() {
                let whole = content_of(ctx, key, &artifact.content).await?;
                unknown.retain(|(address, _)| !whole.contains(address));
            }
        }
        Ok(unknown.first().map(|(_, text)| (*text).to_owned()))
    }

    /// Collects the addresses that stand nowhere in the state, each with the argument it is in.
    fn unknown_to_state<'v>(
        &self,
        arguments: &'v Map<String, Value>,
        found: &mut Vec<(&'v str, &'v str)>,
    ) {
        arguments.values().for_each(|value| self.unknown_in(value, found));
    }

    fn unknown_in<'v>(&self, value: &'v Value, found: &mut Vec<(&'v str, &'v str)>) {
        match value {
            Value::String(text) => {
                let address = stripped(text).filter(|address| !self.contains(address));
                found.extend(address.map(|address| (address, text.as_str())));
            }
            Value::Array(list) => list.iter().for_each(|value| self.unknown_in(value, found)),
            Value::Object(map) => self.unknown_to_state(map, found),
            _ => {}
        }
    }
}

/// Returns an address without its scheme and its end; nothing of a text that is none.
fn stripped(text: &str) -> Option<&str> {
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        return None;
    }
    let (scheme, rest) = text.split_once("://")?;
    let is_web = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let rest = rest.split('#').next().unwrap_or(rest);
    is_web.then(|| rest.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unknown(shown: &str, arguments: Value) -> Option<String> {
        let state = GraphState::default();
        let mut all = Shown::at_opening(&state);
        all.add(shown);
        let mut found = Vec::new();
        all.unknown_to_state(arguments.as_object().unwrap(), &mut found);
        found.first().map(|(_, text)| (*text).to_owned())
    }

    /// S3.07: an address that stood in no question, result or page is found, wherever in the arguments it stands.
    #[test]
    fn an_address_is_known_by_where_it_stood() {
        let shown = "Read https://sea.test/tides?of=may, and harbour.test.";
        for known in
            ["https://sea.test/tides?of=may", "https://sea.test/tides", "http://harbour.test/#top"]
        {
            assert_eq!(unknown(shown, json!({ "url": known })), None);
        }
        for made_up in [
            "https://sea.test/tides?of=may&key=k",
            "https://evil.test/?of=may",
            "HTTPS://evil.test",
        ] {
            assert_eq!(
                unknown(shown, json!({ "in": [{ "url": made_up }] })).as_deref(),
                Some(made_up)
            );
        }
        assert_eq!(
            unknown(shown, json!({ "query": "about https://evil.test/ in words", "n": 3 })),
            None
        );
    }
}
