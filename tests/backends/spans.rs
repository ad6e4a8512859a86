//! Spans in one form, no matter who tells of them: the program or a backend.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde_json::Value;

/// Attributes that people filter and group by; every backend must give them back unchanged.
pub const FILTERED: [&str; 9] = [
    "session.id",
    "thread.id",
    "agent_name",
    "reflection_status",
    "tool_usage",
    "perihelion.checkpoint.id",
    "graph.node.id",
    "graph.transition.reason",
    "gen_ai.operation.name",
];

/// One span, without what backends write in forms of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub parent: Option<String>,
    pub name: String,
    /// `OK`, `ERROR` or `UNSET`.
    pub status: String,
    pub message: String,
    /// Microseconds since 1970: no backend keeps less.
    pub began: i64,
    pub ended: i64,
    /// Names of the events.
    pub events: Vec<String>,
    /// Those of [`FILTERED`] that it has.
    pub attributes: BTreeMap<String, String>,
}

/// One trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// By span id.
    pub spans: BTreeMap<String, Span>,
    pub session: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// Reads what `perihelion trace` prints with `--json` and with `--otlp`.
pub fn printed(json: &Value, otlp: &Value) -> (String, Trace) {
    let root = &json["spans"][0];
    let mut trace = Trace {
        session: text(&json["thread_id"]),
        input_tokens: root["usage"]["input_tokens"].as_u64().unwrap(),
        output_tokens: root["usage"]["output_tokens"].as_u64().unwrap(),
        ..Trace::default()
    };
    let spans = otlp["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    for span in spans {
        let code = span["status"]["code"].as_u64().unwrap_or_default();
        let wire = Span {
            parent: Some(text(&span["parentSpanId"])).filter(|id| !id.is_empty()),
            name: text(&span["name"]),
            status: ["UNSET", "OK", "ERROR"][usize::try_from(code).unwrap()].to_owned(),
            message: text(&span["status"]["message"]),
            began: micros(&span["startTimeUnixNano"]),
            ended: micros(&span["endTimeUnixNano"]),
            events: names(&span["events"]),
            attributes: filtered(|name| {
                let list = span["attributes"].as_array().unwrap();
                let found = list.iter().find(|one| one["key"] == name)?;
                Some(text(&found["value"]["stringValue"]))
            }),
        };
        trace.spans.insert(text(&span["spanId"]), wire);
    }
    // Two forms of the same spans.
    let listed = json["spans"].as_array().unwrap();
    assert_eq!(listed.len(), trace.spans.len());
    for one in listed {
        let wire = &trace.spans[&text(&one["span_id"])];
        assert_eq!(wire.parent.as_deref(), one["parent"].as_str(), "{one}");
        assert_eq!(wire.status.to_lowercase(), text(&one["status"]["code"]), "{one}");
        assert_eq!((wire.began, wire.ended), (moment(&one["start"]), moment(&one["end"])), "{one}");
    }
    (text(&json["trace_id"]), trace)
}

/// Collects those of [`FILTERED`] that are there.
pub fn filtered(find: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let found = FILTERED.into_iter().filter_map(|name| Some((name.to_owned(), find(name)?)));
    found.collect()
}

pub fn names(events: &Value) -> Vec<String> {
    events.as_array().into_iter().flatten().map(|event| text(&event["name"])).collect()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads nanoseconds, written as a number or as text.
pub fn micros(value: &Value) -> i64 {
    let nanos = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    nanos.unwrap_or_else(|| panic!("not a time: {value}")) / 1000
}

/// Reads a time of RFC 3339.
pub fn moment(value: &Value) -> i64 {
    DateTime::parse_from_rfc3339(&text(value)).unwrap().timestamp_micros()
}
