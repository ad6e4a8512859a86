//! What the reference server was recorded with is asked of this one, exchange by exchange, and answered in the same way.
//!
//! `recordings.json` has the exchanges without what was said in them (`reduce_recordings.py` makes it). Each is sent
//! again, in order, with a question of our graph's in the place of the recorded graph's input; status, headers, fields and
//! their types, the names of events and the forms of their data are held to the recording. What is left out, or different,
//! says why.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::{Value, json};

use super::recorded::compare;
use super::served::Served;
use super::streams::{Event, heard_until};
use super::translated::{SLOW, modes, translate};

/// Scenarios that our graph cannot mirror, or that are held elsewhere.
const LEFT_OUT: [(&str, &str); 6] = [
    (
        "37-subgraph-stream-interrupt",
        "the star's subgraphs ask nobody; their events are held by tests/it",
    ),
    ("40-v3-protocol-websocket", "a socket is held by protocol.rs"),
    ("41-v3-all-channels-websocket", "a socket is held by protocol.rs"),
    ("43-cors", "answers to pages are held by main.rs"),
    ("60-a2a", "A2A is spoken as 1.0, and held to its own suite"),
    ("61-mcp", "MCP is held to its own suite"),
];

/// What is different, by the end of what is found, and why it is.
const DIFFERENT: [(&str, &str); 11] = [
    (".metadata lacks user_id", "whose thread it is stands in the thread"),
    (".metadata lacks checkpoint_id", "an edited step names the one before it as its parent alone"),
    ("21-cancel-rollback 3: status 404 and not 200", "a run that was rolled back is gone"),
    (
        "17-stateless 2: content-location",
        "a run without a thread of its client's has one, which may be looked at",
    ),
    (
        "17-stateless 2: location",
        "a run without a thread of its client's has one, which may be looked at",
    ),
    ("07-stream-mixed-resumable 2: events lack messages", ASKS_FIRST),
    ("08-rejoin-last-event-id 1: events lack messages", ASKS_FIRST),
    ("08-rejoin-last-event-id 3: events lack messages", ASKS_FIRST),
    ("48-js-sdk-legacy 2: events lack messages", ASKS_FIRST),
    ("48-js-sdk-legacy 4: events lack messages", ASKS_FIRST),
    ("50-agent-chat-ui-first-message 7: events lack messages", ASKS_FIRST),
];

const ASKS_FIRST: &str =
    "only the last node writes to the user, and the run asks for approval before it";

/// Streams in which the recorded graph writes to the user before it asks; ours writes once it was answered, and would wait two
/// minutes for the answer.
const HEARS_LATER: [&str; 1] = ["41-v3-all-channels-sse 3"];

/// Events that come beside those recorded: what agents do, and that a message is complete.
const BESIDE: [&str; 2] = ["custom", "messages/complete"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    method: String,
    path: String,
    #[serde(default)]
    asked: Value,
    status: u16,
    headers: BTreeMap<String, String>,
    shape: Option<Value>,
    events: Option<Vec<String>>,
    /// The forms of events' data, by their names.
    #[serde(default)]
    data: Vec<(String, Value)>,
    /// Whether the client left before the stream's end.
    #[serde(default)]
    left: bool,
    /// The `Last-Event-ID` that was sent: `-1`, or `event`.
    after: Option<String>,
    /// Ids in the answer, by their places, that later exchanges name.
    #[serde(default)]
    ids: BTreeMap<String, String>,
}

struct Replay {
    served: Served,
    /// Our ids, by the names of those recorded.
    ids: HashMap<String, String>,
    /// The first event of each run, which a client names that follows on.
    first: HashMap<String, String>,
    /// What was different, to be told together.
    found: Vec<String>,
    /// Streams that are followed while other things are asked.
    followed: Vec<(String, tokio::task::JoinHandle<Vec<Event>>, BTreeSet<String>)>,
}

/// X5
#[tokio::test]
async fn recorded_requests_get_the_recorded_responses() {
    let served = Served::sqlite().await;
    let recorded: BTreeMap<String, Vec<Exchange>> =
        serde_json::from_str(include_str!("recordings.json")).unwrap();
    for (name, why) in LEFT_OUT {
        assert!(recorded.contains_key(name), "it was never recorded: {name}, {why}");
    }
    let mut replay = Replay {
        served,
        ids: HashMap::new(),
        first: HashMap::new(),
        found: Vec::new(),
        followed: Vec::new(),
    };
    for (scenario, exchanges) in recorded {
        if LEFT_OUT.iter().any(|(name, _)| *name == scenario) {
            continue;
        }
        for (number, exchange) in exchanges.iter().enumerate() {
            // Pages ask first; what they are told is held by main.rs.
            if exchange.method != "OPTIONS" {
                replay.ask(&scenario, number + 1, exchange).await;
            }
        }
        replay.end_streams().await;
    }
    let is_meant = |one: &str, meant: &str| one.ends_with(meant) || one.starts_with(meant);
    for (meant, why) in DIFFERENT {
        let is_so = replay.found.iter().any(|one| is_meant(one, meant));
        assert!(is_so, "it is as recorded by now: {meant} ({why})");
    }
    let found = replay.found.iter();
    let found = found.filter(|one| DIFFERENT.iter().all(|(meant, _)| !is_meant(one, meant)));
    let found: BTreeSet<&str> = found.map(String::as_str).collect();
    let found: Vec<&str> = found.into_iter().collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

impl Replay {
    async fn ask(&mut self, scenario: &str, number: usize, recorded: &Exchange) {
        let place = format!("{scenario} {number}");
        let is_slow = recorded.asked["assistant_id"] == "slow" || SLOW.contains(&scenario);
        let path = self.filled(&modes(&recorded.path, is_slow));
        let url = format!("{}{path}", self.served.url);
        let mut asked = self.served.http.request(recorded.method.parse().unwrap(), url);
        if let Some(after) = &recorded.after {
            // The id of an event is the reference's own; ours is that of the first event.
            let run = path.split('/').nth(4).unwrap_or_default();
            let ours = self.first.get(run).filter(|_| after == "event");
            asked = asked.header("last-event-id", ours.unwrap_or(after));
        }
        let mut wanted = recorded.asked.clone();
        if scenario.starts_with("06-stream-mode-messages") && wanted["assistant_id"] == "agent" {
            // What is to be heard is an answer.
            wanted["assistant_id"] = json!("star");
        }
        let body = self.body(&wanted, &path, is_slow).await;
        if let Some(body) = body {
            asked = asked.header("content-type", "application/json").body(body);
        }
        let answer = asked.send().await.unwrap();
        let status = answer.status().as_u16();
        if status != recorded.status {
            let reply = answer.text().await.unwrap_or_default();
            self.found
                .push(format!("{place}: status {status} and not {}: {reply}", recorded.status));
            return;
        }
        for (name, recorded) in &recorded.headers {
            let found = answer.headers().get(name).and_then(|value| value.to_str().ok());
            match found {
                None => self.found.push(format!("{place}: there is no header {name}")),
                Some(found) => self.header(&place, name, recorded, found),
            }
        }
        match (&recorded.events, &recorded.shape) {
            (Some(names), _) => {
                let names: Vec<String> = names.iter().map(|name| modes(name, is_slow)).collect();
                if HEARS_LATER.contains(&place.as_str()) {
                    self.approve(&path).await;
                }
                let is_thread_s = path.contains("/stream?") && !path.contains("/runs/");
                let how = (recorded.left, is_thread_s);
                let heard = self.stream(&place, answer, names, how).await;
                if recorded.left && recorded.asked["on_disconnect"] == "cancel" {
                    // What was recorded next is how the thread stands once its run has ended by that.
                    let thread = path.split("/runs").next().unwrap_or_default();
                    self.served.until_got(thread, |thread| thread["status"] != "busy").await;
                }
                // One who follows on was recorded from a later event on.
                if recorded.after.as_deref() != Some("event") {
                    self.data(&place, &recorded.data, &heard);
                }
            }
            (None, Some(shape)) => {
                let text = answer.text().await.unwrap();
                let found = serde_json::from_str(&text).unwrap_or(Value::String(text));
                for (at, name) in &recorded.ids {
                    if let Some(id) = found.pointer(at).and_then(Value::as_str) {
                        self.ids.entry(name.clone()).or_insert_with(|| id.to_owned());
                    }
                }
                let mut shape = shape.clone();
                without_its_own(&mut shape);
                let mut differs = Vec::new();
                compare(&place, &shape, &found, &mut differs);
                self.found.extend(differs);
            }
            (None, None) => {}
        }
    }

    /// Holds a header to its recording; one that names a place binds the ids in it.
    fn header(&mut self, place: &str, name: &str, recorded: &str, found: &str) {
        let is_place = name.ends_with("location");
        let mut same = is_place || found.starts_with(recorded) || name.starts_with("x-");
        if is_place {
            let recorded: Vec<&str> = recorded.split('/').collect();
            let found: Vec<&str> = found.split('/').collect();
            same = recorded.len() == found.len();
            for (recorded, found) in recorded.iter().zip(&found) {
                same &= if recorded.starts_with('{') {
                    let known = self.ids.entry((*recorded).to_owned());
                    known.or_insert_with(|| (*found).to_owned()) == found
                } else {
                    recorded == found
                };
            }
        }
        if !same {
            self.found.push(format!("{place}: {name} is {found} and not {recorded}"));
        }
    }

    /// Holds the data of events to the forms that were recorded for their names.
    fn data(&mut self, place: &str, recorded: &[(String, Value)], heard: &[Event]) {
        for event in heard {
            let forms = recorded.iter().filter(|(name, _)| *name == event.name);
            let found = form(event);
            let differences = forms.map(|(name, form)| {
                let mut form = form.clone();
                without_its_own(&mut form);
                let mut differs = Vec::new();
                compare(&format!("{place} {name}"), &form, &found, &mut differs);
                differs
            });
            self.found.extend(differences.min_by_key(Vec::len).unwrap_or_default());
        }
    }

    /// Hears a stream and holds the names of its events to the recording; returns the events.
    async fn stream(
        &mut self,
        place: &str,
        answer: reqwest::Response,
        names: Vec<String>,
        (left, is_thread_s): (bool, bool),
    ) -> Vec<Event> {
        let wanted: BTreeSet<String> = names.iter().cloned().collect();
        if left && is_thread_s {
            let until = wanted.clone();
            let heard = tokio::spawn(async move { heard_until(answer, &until).await });
            self.followed.push((place.to_owned(), heard, wanted));
            return Vec::new();
        }
        let heard = if left {
            heard_until(answer, &wanted).await
        } else {
            super::streams::read(answer, usize::MAX).await
        };
        if let Some(first) = heard.first()
            && let Some(run) = first.data["run_id"].as_str()
        {
            self.first.entry(run.to_owned()).or_insert_with(|| first.id.clone());
        }
        let found: Vec<&str> = heard.iter().map(|event| event.name.as_str()).collect();
        let lacks = wanted.iter().filter(|name| !found.contains(&name.as_str()));
        let lacks: Vec<&str> = lacks.map(String::as_str).collect();
        if !lacks.is_empty() {
            self.found.push(format!("{place}: events lack {}", lacks.join(", ")));
            return heard;
        }
        let is_known = |name: &&str| wanted.contains(*name) || BESIDE.contains(name);
        let of_those = || found.iter().filter(|name| wanted.contains(**name)).copied();
        let ends = of_those().next() == names.first().map(String::as_str)
            && (left || of_those().last() == names.last().map(String::as_str));
        if !ends || !(left || found.iter().all(is_known)) {
            self.found.push(format!("{place}: events {found:?} and not {names:?}"));
        }
        heard
    }

    /// Waits for what was followed while other things were asked.
    async fn end_streams(&mut self) {
        for (place, heard, wanted) in std::mem::take(&mut self.followed) {
            let heard = heard.await.unwrap();
            let there: BTreeSet<String> = heard.into_iter().map(|event| event.name).collect();
            if !wanted.is_subset(&there) {
                self.found.push(format!("{place}: events {there:?} and not {wanted:?}"));
            }
        }
    }

    /// Puts our ids in the place of the recorded ones; one that nobody told is any.
    fn filled(&mut self, text: &str) -> String {
        let mut filled = text.to_owned();
        while let Some((before, rest)) = filled.split_once('{') {
            let Some((name, after)) = rest.split_once('}') else { break };
            let any = if name.starts_with("assistant") {
                "swarm".to_owned()
            } else {
                uuid::Uuid::now_v7().to_string()
            };
            let id = self.ids.entry(format!("{{{name}}}")).or_insert(any);
            filled = format!("{before}{id}{after}");
        }
        filled
    }

    /// Makes the body of a request: the recorded one, with what our graph is asked.
    async fn body(&mut self, recorded: &Value, path: &str, is_slow: bool) -> Option<String> {
        match recorded {
            Value::Null => None,
            // It was no JSON.
            Value::String(_) => Some("{\"assistant_id\":".to_owned()),
            Value::Array(all) => {
                let mut bodies = Vec::new();
                for one in all {
                    let body = Box::pin(self.body(one, path, is_slow)).await.unwrap();
                    bodies.push(serde_json::from_str::<Value>(&body).unwrap());
                }
                Some(json!(bodies).to_string())
            }
            recorded => {
                let text = self.filled_json(&modes(&recorded.to_string(), is_slow));
                let mut body: Value = serde_json::from_str(&text).unwrap();
                let open = self.open(path).await;
                translate(&mut body, &open);
                Some(body.to_string())
            }
        }
    }

    /// Puts ids into JSON, whose own braces stay.
    fn filled_json(&mut self, text: &str) -> String {
        let mut filled = String::new();
        for (index, part) in text.split('"').enumerate() {
            let mark = if index > 0 { "\"" } else { "" };
            let is_id = part.starts_with('{') && part.ends_with('}') && index % 2 == 1;
            let part = if is_id { self.filled(part) } else { part.to_owned() };
            filled.push_str(mark);
            filled.push_str(&part);
        }
        filled
    }

    /// Approves what the run of a path's thread asks, once it asks, and waits for the run's end.
    async fn approve(&self, path: &str) {
        let thread = path.split('/').nth(2).unwrap();
        let state = format!("/threads/{thread}/state");
        let asks =
            |state: &Value| state["interrupts"].as_array().is_some_and(|all| !all.is_empty());
        self.served.until_got(&state, asks).await;
        let resume = json!({ "decisions": [{ "type": "approve" }] });
        let body = json!({ "assistant_id": "swarm", "command": { "resume": resume } });
        let (code, reply) = self.served.post(&format!("/threads/{thread}/runs/wait"), &body).await;
        assert_eq!(code, 200, "{reply}");
    }

    /// Returns the ids of the questions that a path's thread asks.
    async fn open(&self, path: &str) -> Vec<String> {
        let Some((thread, _)) =
            path.strip_prefix("/threads/").and_then(|rest| rest.split_once('/'))
        else {
            return Vec::new();
        };
        let (_, state) = self.served.get(&format!("/threads/{thread}/state")).await;
        let open = state["interrupts"].as_array().into_iter().flatten();
        open.filter_map(|one| one["id"].as_str().map(str::to_owned)).collect()
    }
}

/// Returns the data of an event in the form in which it was recorded.
fn form(event: &Event) -> Value {
    match (event.name.as_str(), &event.data) {
        ("messages", Value::Array(pair)) => json!({ "chunk": pair[0], "about": pair[1] }),
        ("messages/metadata", Value::Object(all)) => json!(all.values().next()),
        (_, data) => data.clone(),
    }
}

/// Takes out what the reference says of its own versions, hosts and traces.
fn without_its_own(shape: &mut Value) {
    match shape {
        Value::Object(fields) => {
            let is_its_own = |name: &str| {
                ["langgraph_", "langsmith_", "ls_", "lc_"].iter().any(|own| name.starts_with(own))
            };
            fields.retain(|name, _| !is_its_own(name));
            fields.values_mut().for_each(without_its_own);
        }
        Value::Array(all) => all.iter_mut().for_each(without_its_own),
        _ => {}
    }
}
