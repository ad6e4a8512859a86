//! What a request may say beside its question, for the faces that have no fields of their own for it: in the metadata
//! of OpenAI's and A2A's requests, and in the arguments of the MCP tool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::agent_server::Refusal;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::Run;
use perihelion_service::{Approvals, Order, Service, Turn};

/// What a request may say beside its question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct RequestFields {
    /// Free key-values that agents are shown.
    context: BTreeMap<String, String>,
    /// Agents to be preferred.
    prefer_agents: Vec<String>,
    /// Agents to be left out.
    disable_agents: Vec<String>,
    /// The team that does the whole work; by default the one whose thread it is, if it is a team's.
    team: Option<String>,
    /// Decisions that the supervisor may take.
    max_turns: Option<u32>,
    /// Whether the first table that was found comes with the answer.
    include_data: bool,
    /// Whether what happened comes with the answer.
    trace: bool,
    /// How the work is to be done and the answer put.
    system_prompt: Option<String>,
    /// What becomes of calls that need a person's approval: `wait` or `skip`.
    approvals: Option<Approvals>,
    /// Whose request it is; for keys with the scope `act_as`.
    user: Option<String>,
}

/// How a field is read where it comes as a text.
type ReadText = fn(&str) -> Value;

/// The fields, and how each is read where it comes as a text.
const FIELDS: [(&str, ReadText); 10] = [
    ("context", json_or_text),
    ("prefer_agents", list),
    ("disable_agents", list),
    ("team", text),
    ("max_turns", json_or_text),
    ("include_data", flag),
    ("trace", flag),
    ("system_prompt", text),
    ("approvals", text),
    ("user", text),
];

fn text(given: &str) -> Value {
    json!(given)
}

fn json_or_text(given: &str) -> Value {
    serde_json::from_str(given).unwrap_or_else(|_| json!(given))
}

fn flag(given: &str) -> Value {
    match given.trim().to_lowercase().as_str() {
        "true" | "1" | "yes" => json!(true),
        "false" | "0" | "no" | "" => json!(false),
        other => json!(other),
    }
}

fn list(given: &str) -> Value {
    match serde_json::from_str(given) {
        Ok(list @ Value::Array(_)) => list,
        _ => given.split(',').map(str::trim).filter(|name| !name.is_empty()).collect(),
    }
}

impl RequestFields {
    /// Reads metadata, whose values may be texts: some clients send no others. What else stands there is the client's.
    ///
    /// # Errors
    /// [`Refusal`] naming what cannot be read.
    pub(super) fn of_metadata(metadata: &Value) -> Result<Self, Refusal> {
        let mut own = Map::new();
        for (name, read) in FIELDS {
            let Some(given) = metadata.get(name).filter(|given| !given.is_null()) else { continue };
            let value = given.as_str().map_or_else(|| given.clone(), read);
            let alone = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
            serde_json::from_value::<Self>(alone)
                .map_err(|error| Refusal::invalid(format!("metadata.{name}: {error}")))?;
            own.insert(name.to_owned(), value);
        }
        serde_json::from_value(Value::Object(own))
            .map_err(|error| Refusal::invalid(error.to_string()))
    }

    /// Brings them into a turn; what the turn says itself goes before.
    ///
    /// # Errors
    /// [`Refusal`] where a user is named by somebody who may not act for them.
    pub(super) fn applied_to(self, service: &Service, turn: Turn) -> Result<Turn, Refusal> {
        let user = service.who().acting_as(self.user.as_deref())?;
        Ok(Turn {
            context: self.context,
            prefer_agents: self.prefer_agents,
            disable_agents: self.disable_agents,
            team: turn.team.or(self.team),
            max_turns: self.max_turns,
            include_data: self.include_data,
            trace: self.trace,
            system_prompt: turn.system_prompt.or(self.system_prompt),
            approvals: turn.approvals.or(self.approvals),
            user,
            ..turn
        })
    }
}

/// Returns the table that was found (`data`), and what happened (`trace`), where a run's request wants them.
pub(super) async fn asked_for(service: &Service, run: &Run) -> Result<Map<String, Value>, Refusal> {
    let order = Order::of(run)?;
    let Some(turn) = order.turn() else { return Ok(Map::new()) };
    let thread = ThreadId(run.thread);
    let runtime = service.runtime();
    let mut found = Map::new();
    if turn.include_data {
        found.insert("data".into(), json!(runtime.at_rest(thread).await?.data));
    }
    if turn.trace {
        found.insert("trace".into(), json!(runtime.events(thread).await?));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2.01
    #[test]
    fn metadata_may_hold_values_or_texts_and_what_is_the_client_s_own() {
        let typed = json!({
            "context": { "tier": "gold" }, "prefer_agents": ["a", "b"], "max_turns": 3, "include_data": true,
            "system_prompt": "Be brief.", "mine": [1],
        });
        let texts = json!({
            "context": "{\"tier\": \"gold\"}", "prefer_agents": "a, b", "max_turns": "3", "include_data": "true",
            "system_prompt": "Be brief.", "mine": "1",
        });
        let [typed, texts] =
            [typed, texts].map(|given| RequestFields::of_metadata(&given).unwrap());
        assert_eq!(typed, texts);
        assert_eq!((typed.max_turns, typed.prefer_agents), (Some(3), vec!["a".into(), "b".into()]));
        for wrong in [
            json!({ "max_turns": "many" }),
            json!({ "trace": "perhaps" }),
            json!({ "approvals": "now" }),
        ] {
            let Refusal(_, why) = RequestFields::of_metadata(&wrong).unwrap_err();
            assert!(why.starts_with("metadata."), "{why}");
        }
        assert_eq!(RequestFields::of_metadata(&Value::Null).unwrap(), RequestFields::default());
    }
}
