//! Reads requests for runs, above the defaults of their assistants.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::choices::{Durability, IfNotExists, OnCompletion, OnDisconnect, OneOrMany};
use super::message::{turn, with_context};
use super::state::{read_input, read_update};
use crate::agent_server::Refusal;
use crate::http::read_object;
use crate::parts;
use perihelion_engine::graph::Nodes;
use perihelion_runtime::Served;
use perihelion_service::kept::Multitask;
use perihelion_service::{Along, Approvals, Asked, Order};
use perihelion_star::{GRAPH, Request};
use uuid::Uuid;

/// Names in `configurable` that the protocol itself uses.
const ITS_OWN: [&str; 9] = [
    "thread_id",
    "run_id",
    "cron_id",
    "graph_id",
    "assistant_id",
    "user_id",
    "checkpoint_id",
    "checkpoint_ns",
    "checkpoint_map",
];

const LIMIT: &str = "recursion_limit";
const CONFIGURABLE: &str = "configurable";

/// A client's request to start a run; unknown fields are ignored, because clients send fields of newer servers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RunBody {
    pub assistant_id: Option<String>,
    pub input: Option<Value>,
    pub command: Option<Value>,
    pub stream_mode: Option<OneOrMany>,
    pub stream_subgraphs: bool,
    pub stream_resumable: bool,
    pub config: Option<Map<String, Value>>,
    pub context: Option<Value>,
    pub metadata: Option<Map<String, Value>>,
    pub checkpoint: Option<Value>,
    pub checkpoint_id: Option<String>,
    pub interrupt_before: Option<OneOrMany>,
    pub interrupt_after: Option<OneOrMany>,
    pub multitask_strategy: Option<Multitask>,
    pub on_disconnect: Option<OnDisconnect>,
    pub on_completion: Option<OnCompletion>,
    pub if_not_exists: Option<IfNotExists>,
    pub durability: Option<Durability>,
    pub after_seconds: Option<f64>,
    pub webhook: Option<String>,
    pub feedback_keys: Option<Value>,
    /// Extension: the handling of calls that need an approval.
    pub approvals: Option<Approvals>,
}

impl RunBody {
    pub(crate) fn read(given: &Value) -> Result<Self, Refusal> {
        read_object(given.clone())
    }

    /// Applies an assistant's context and step limit, below those of the body. The fields of `configurable` are context
    /// too, below the field `context`.
    pub(crate) fn over(mut self, config: &Value, context: &Value) -> Self {
        let mut own_config = self.config.take().unwrap_or_default();
        let own_context = self.context.take().unwrap_or_default();
        let mut merged = Map::new();
        for layer in [
            configurable(config.get(CONFIGURABLE)),
            fields(context),
            configurable(own_config.get(CONFIGURABLE)),
            fields(&own_context),
        ] {
            merged.extend(layer);
        }
        self.context = Some(Value::Object(merged));
        if let Some(limit) = config.get(LIMIT) {
            own_config.entry(LIMIT).or_insert_with(|| limit.clone());
        }
        self.config = Some(own_config);
        self
    }

    /// Returns the checkpoint that the run begins at, by its id.
    pub(crate) fn at(&self) -> Option<&str> {
        let of_config = || self.config.as_ref()?.get(CONFIGURABLE)?.get("checkpoint_id")?.as_str();
        self.checkpoint_id
            .as_deref()
            .or_else(|| self.checkpoint.as_ref().and_then(super::named_checkpoint))
            .or_else(of_config)
    }

    pub(crate) fn order(&self, graph: &dyn Served) -> Result<Order, Refusal> {
        let names = |given: &Option<OneOrMany>| {
            Nodes::from(given.clone().map_or_else(Vec::new, OneOrMany::into_vec))
        };
        let (asked, along) = asked(self, graph)?;
        let mut order = Order::new(asked);
        order.along = along;
        order.pauses.before = names(&self.interrupt_before);
        order.pauses.after = names(&self.interrupt_after);
        if let Asked::Turn(turn) = &mut order.asked {
            turn.approvals = turn.approvals.or(self.approvals);
        }
        order.durability = self.durability.map(|mode| mode.as_str().to_owned());
        let limit = self.config.as_ref().and_then(|config| config.get(LIMIT));
        order.max_steps = limit.and_then(Value::as_u64);
        if order.max_steps == Some(0) {
            return Err(Refusal::invalid("recursion_limit must be at least 1"));
        }
        Ok(order)
    }

    pub(crate) fn shown(&self, modes: &[String]) -> Value {
        json!({
            "input": self.input.as_ref().map(parts::veiled),
            "command": self.command,
            "config": self.config.clone().unwrap_or_default(),
            "context": self.context.clone().unwrap_or_else(|| json!({})),
            "stream_mode": modes,
            "interrupt_before": self.interrupt_before.clone().map(OneOrMany::into_vec),
            "interrupt_after": self.interrupt_after.clone().map(OneOrMany::into_vec),
            "webhook": self.webhook,
            "feedback_keys": self.feedback_keys,
            "temporary": self.on_completion == Some(OnCompletion::Delete),
            "subgraphs": self.stream_subgraphs,
            "resumable": self.stream_resumable,
            "checkpoint_during": true,
            "durability": self.durability.unwrap_or(Durability::Sync).as_str(),
        })
    }
}

fn configurable(given: Option<&Value>) -> Map<String, Value> {
    let is_its_own = |name: &str| {
        ITS_OWN.contains(&name) || name.starts_with("__") || name.starts_with("langgraph_")
    };
    let mut given = given.map(fields).unwrap_or_default();
    given.retain(|name, _| !is_its_own(name));
    given
}

fn fields(given: &Value) -> Map<String, Value> {
    given.as_object().cloned().unwrap_or_default()
}

/// Reads the request of a run, and the edit that goes along with its answers; a command precedes an input.
fn asked(body: &RunBody, graph: &dyn Served) -> Result<(Asked, Option<Along>), Refusal> {
    let given = body.command.as_ref().filter(|command| !command.is_null());
    let Some(given) = given else { return Ok((asked_by_input(body, graph)?, None)) };
    let Some(command) = given.as_object() else {
        return Err(Refusal::invalid("command must be an object with resume, update or goto"));
    };
    let resume = command.get("resume").filter(|resume| !resume.is_null()).cloned();
    Ok(match (resume, read_command(command, graph)?) {
        (Some(_), Some(_)) if !graph.about().is_hosted => {
            let why = "command.resume cannot be sent together with update or goto; edit the state in a request of its own";
            return Err(Refusal::invalid(why));
        }
        (Some(resume), along) => (Asked::Resume(resume), along),
        (None, Some(Along { update, goto, .. })) => {
            (Asked::Edit { update, as_node: None, goto }, None)
        }
        (None, None) => (asked_by_input(body, graph)?, None),
    })
}

fn asked_by_input(body: &RunBody, graph: &dyn Served) -> Result<Asked, Refusal> {
    if let Some(input) = body.input.as_ref().filter(|input| !input.is_null())
        && graph.about().name != GRAPH
    {
        let name = graph.about().name.clone();
        return Ok(Asked::Input { graph: name, input: read_input(graph, input)? });
    }
    match &body.input {
        None | Some(Value::Null) => Ok(Asked::Continue),
        Some(Value::Object(fields)) if fields.is_empty() => Ok(Asked::Continue),
        Some(Value::Object(fields)) => Ok(Asked::Turn(turn(fields, body.context.as_ref())?)),
        Some(Value::String(question)) => {
            let question = question.clone();
            Ok(Asked::Turn(with_context(
                Request { question, ..Request::default() },
                body.context.as_ref(),
            )))
        }
        Some(_) => {
            Err(Refusal::invalid("input must be an object with messages, or with a question"))
        }
    }
}

/// Reads the update and the next nodes of a command; `None` if it has neither.
fn read_command(
    command: &Map<String, Value>,
    graph: &dyn Served,
) -> Result<Option<Along>, Refusal> {
    let given = |key: &str| command.get(key).filter(|value| !value.is_null());
    let goto = goto(given("goto"), graph.about().is_hosted)?;
    let update = match given("update") {
        Some(Value::Array(pairs)) if graph.about().is_hosted => {
            let is_pair = |pair: &Value| {
                pair.as_array().is_some_and(|pair| pair.len() == 2 && pair[0].is_string())
            };
            if !pairs.iter().all(is_pair) {
                let why =
                    "command.update must be an object, or a list of pairs of a name and a value";
                return Err(Refusal::invalid(why));
            }
            json!(pairs)
        }
        update => read_update(graph, update.unwrap_or(&Value::Null))?,
    };
    let is_empty = goto.is_empty() && (update == json!({}) || update == json!([]));
    Ok((!is_empty).then(|| Along { id: Uuid::now_v7(), update, goto }))
}

/// Reads the next nodes of a command: one node or a list of them, by name or each as a Send with its input.
fn goto(given: Option<&Value>, is_hosted: bool) -> Result<Vec<Value>, Refusal> {
    let targets = match given {
        None => Vec::new(),
        Some(Value::Array(list)) => list.clone(),
        Some(one) => vec![one.clone()],
    };
    let is_send = |to: &Value| to["node"].is_string() && to.get("input").is_some();
    if !targets.iter().all(Value::is_string) && !targets.iter().all(is_send) {
        let why = "goto must be a node, a Send, or a list of nodes or of Sends; a Send has a node and an input";
        return Err(Refusal::invalid(why));
    }
    let read = |to: Value| match to.get("input") {
        // A node here reads the state that all share.
        Some(input) if !is_hosted && !input.is_null() => {
            let why = "goto cannot have the input of a Send; pass it as command.update and name only the node";
            Err(Refusal::invalid(why))
        }
        Some(_) if !is_hosted => Ok(to["node"].clone()),
        _ => Ok(to),
    };
    targets.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use perihelion_runtime::supervisor_offline as star;

    fn turn_of(body: Value) -> Request {
        match asked(&RunBody::read(&body).unwrap(), &*star().unwrap()).unwrap().0 {
            Asked::Turn(turn) => turn,
            other => panic!("{other:?}"),
        }
    }

    /// S2.12
    #[test]
    fn a_run_inherits_unset_fields_from_its_assistant() {
        let config = json!({
            "recursion_limit": 7,
            "configurable": { "tier": "lead", "region": "EU", "thread_id": "t", "checkpoint_id": "c", "__own": 1 },
        });
        let context = json!({ "tier": "gold", "tone": "dry" });
        let body = json!({ "context": { "tone": "warm" }, "config": { "configurable": { "region": "US" } } });
        let run = RunBody::read(&body).unwrap().over(&config, &context);
        let wanted = json!({ "tier": "gold", "region": "US", "tone": "warm" });
        assert_eq!(run.context, Some(wanted));
        assert_eq!(run.config.as_ref().unwrap()["recursion_limit"], 7);
        assert_eq!(run.at(), None, "a run begins where its thread stands");
        let body = json!({ "config": { "recursion_limit": 3 } });
        let run = RunBody::read(&body).unwrap().over(&config, &context);
        assert_eq!(run.config.unwrap()["recursion_limit"], 3);
    }

    #[test]
    fn the_last_human_messages_are_the_question_in_whatever_form_they_come() {
        for messages in [
            json!([{ "type": "human", "content": "Who left?" }]),
            json!([{ "role": "user", "content": [{ "type": "text", "text": "Who left?" }] }]),
            json!([{ "type": "ai", "content": "Hello" }, { "type": "human", "content": "Who left?", "id": "x" }]),
            json!([["human", "Who left?"]]),
            json!({ "role": "user", "content": "Who left?" }),
        ] {
            let turn = turn_of(json!({ "input": { "messages": messages } }));
            assert_eq!(turn.question, "Who left?", "{messages}");
        }
    }

    #[test]
    fn a_request_in_our_own_form_keeps_all_it_says() {
        let turn = turn_of(json!({
            "input": { "question": "Why?", "context": { "tier": "gold" }, "prefer_agents": ["sql"], "max_turns": 3 },
            "context": { "region": "EU", "tier": "lead", "limit": 5 },
        }));
        assert_eq!(turn.context["tier"], "gold");
        assert_eq!(turn.context["region"], "EU");
        assert_eq!(turn.context["limit"], "5");
        assert_eq!((turn.prefer_agents, turn.max_turns), (vec!["sql".to_owned()], Some(3)));
    }

    #[test]
    fn a_message_keeps_the_id_by_which_its_client_knows_it() {
        let messages = json!([{ "type": "human", "content": "x", "id": "a" }, { "type": "human", "content": "y", "id": "b" }]);
        let turn = turn_of(json!({ "input": { "messages": messages } }));
        assert_eq!((turn.question.as_str(), turn.message_id.as_deref()), ("y", Some("b")));
        // The earlier one may be known by its ID, and changes then.
        assert_eq!(turn.messages.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["a"]);
        let unnamed = json!([{ "type": "human", "content": "x" }, { "type": "human", "content": "y", "id": "b" }]);
        let turn = turn_of(json!({ "input": { "messages": unnamed } }));
        assert_eq!((turn.question.as_str(), turn.messages.len()), ("x\n\ny", 0));
        let without = turn_of(json!({ "input": { "messages": ["Who left?"] } }));
        assert_eq!(without.message_id, None);
    }

    #[test]
    fn messages_before_the_question_are_merged_into_the_thread() {
        let turn = turn_of(json!({ "input": { "messages": [
            { "type": "remove", "id": "old" }, { "type": "human", "content": "Hi", "id": "a" },
            { "type": "ai", "content": "Hello", "id": "b" }, { "type": "human", "content": "Who left?", "id": "c" },
        ] } }));
        let ids: Vec<&str> = turn.messages.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["old", "a", "b"]);
        assert_eq!((turn.question.as_str(), turn.message_id.as_deref()), ("Who left?", Some("c")));
    }

    #[test]
    fn a_command_goes_before_an_empty_input() {
        let body = json!({ "input": {}, "command": { "resume": { "decisions": [{ "type": "approve" }] } } });
        let body = RunBody::read(&body).unwrap();
        assert!(matches!(asked(&body, &*star().unwrap()), Ok((Asked::Resume(_), None))));
    }

    #[test]
    fn an_input_that_a_send_brings_is_refused_and_not_dropped() {
        let body = |goto: Value| RunBody::read(&json!({ "command": { "goto": goto } })).unwrap();
        let send = json!({ "node": "qa", "input": { "answer": "x" } });
        for goto in [send.clone(), json!([send])] {
            let why = asked(&body(goto), &*star().unwrap()).unwrap_err().1;
            assert!(why.contains("command.update"), "{why}");
        }
        for goto in [json!("qa"), json!([{ "node": "qa", "input": null }])] {
            assert!(
                matches!(asked(&body(goto), &*star().unwrap()), Ok((Asked::Edit { goto, .. }, None)) if goto == ["qa"])
            );
        }
        for goto in
            [json!(5), json!({ "node": "qa" }), json!(["qa", send]), json!({}), json!([["qa"]])]
        {
            let refusal = asked(&body(goto.clone()), &*star().unwrap()).unwrap_err();
            assert!(refusal.1.contains("goto must be"), "{goto}: {}", refusal.1);
        }
    }

    #[test]
    fn an_input_without_anything_to_answer_is_refused() {
        for input in [
            json!({ "messages": [] }),
            json!({ "messages": [{ "type": "ai", "content": "x" }] }),
            json!(3),
        ] {
            let body = RunBody::read(&json!({ "input": input })).unwrap();
            assert!(asked(&body, &*star().unwrap()).is_err(), "{input}");
        }
    }
}
