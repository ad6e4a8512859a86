//! Additional fields of a question, for the APIs without such fields: they are in the metadata of OpenAI's and A2A's
//! requests, and in the arguments of the MCP tool.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::http::Refusal;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::Run;
use perihelion_service::{Approvals, Order, Service};
use perihelion_star::Request;

/// The fields next to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct RequestFields {
    /// Free key-values that agents are shown.
    context: BTreeMap<String, String>,
    /// Agents to be preferred.
    prefer_agents: Vec<String>,
    /// Agents to be left out.
    disable_agents: Vec<String>,
    /// The team that does the whole work; by default the thread's own.
    team: Option<String>,
    /// Decisions that the supervisor may take.
    max_turns: Option<u32>,
    /// Whether the first table that was found comes with the answer.
    include_data: bool,
    /// Whether the answer includes the events.
    trace: bool,
    /// Instructions for the work and the answer.
    system_prompt: Option<String>,
    /// The handling of calls that need an approval: `wait` or `skip`.
    approvals: Option<Approvals>,
    /// The user of the request; for keys with the scope `act_as`.
    user: Option<String>,
}

/// Returns the values that a text of a client that can send only texts may mean, likelier ones first.
fn meanings(text: &str) -> [Value; 4] {
    let list = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let flag = match text.trim().to_lowercase().as_str() {
        "true" | "1" | "yes" => json!(true),
        "false" | "0" | "no" | "" => json!(false),
        _ => json!(text),
    };
    [json!(text), serde_json::from_str(text).unwrap_or_else(|_| json!(text)), list, flag]
}

impl RequestFields {
    /// Reads metadata, whose values may be texts. Other names in it are the client's own.
    pub(super) fn of_metadata(metadata: Option<&Map<String, Value>>) -> Result<Self, Refusal> {
        let mut read = Map::new();
        for (name, given) in metadata.into_iter().flatten() {
            if given.is_null() {
                continue;
            }
            let is_fit =
                |value: &Value| serde_json::from_value::<Self>(json!({ name: value })).is_ok();
            let meant = given.as_str().into_iter().flat_map(meanings).find(is_fit);
            read.insert(name.clone(), meant.unwrap_or_else(|| given.clone()));
        }
        serde_path_to_error::deserialize(Value::Object(read)).map_err(|error| {
            Refusal::invalid(format!("metadata.{}: {}", error.path(), error.inner()))
        })
    }

    /// Applies them to a turn; the turn's own values precede.
    pub(super) fn applied_to(self, service: &Service, turn: Request) -> Result<Request, Refusal> {
        let user = service.who().acting_as(self.user.as_deref())?;
        Ok(Request {
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

/// Returns the table (`data`) and the events (`trace`), if a run's request wants them.
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
    fn metadata_accepts_values_or_texts_and_returns_the_fields_of_the_client() {
        let typed = json!({
            "context": { "tier": "gold" }, "prefer_agents": ["a", "b"], "max_turns": 3, "include_data": true,
            "system_prompt": "Be brief.", "mine": [1],
        });
        let texts = json!({
            "context": "{\"tier\": \"gold\"}", "prefer_agents": "a, b", "max_turns": "3", "include_data": "true",
            "system_prompt": "Be brief.", "mine": "1",
        });
        let [typed, texts] =
            [typed, texts].map(|given| RequestFields::of_metadata(given.as_object()).unwrap());
        assert_eq!(typed, texts);
        assert_eq!((typed.max_turns, typed.prefer_agents), (Some(3), vec!["a".into(), "b".into()]));
        for wrong in [
            json!({ "max_turns": "many" }),
            json!({ "trace": "perhaps" }),
            json!({ "approvals": "now" }),
        ] {
            let Refusal(_, why) = RequestFields::of_metadata(wrong.as_object()).unwrap_err();
            assert!(why.starts_with("metadata."), "{why}");
        }
        assert_eq!(RequestFields::of_metadata(None).unwrap(), RequestFields::default());
    }
}
