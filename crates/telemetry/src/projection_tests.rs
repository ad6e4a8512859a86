//! The projection by value: rows in, spans out.

use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};

use super::*;
use crate::dialect::names;
use perihelion_engine::checkpoint::{EffectStatus, Encoded, ThreadInfo, ThreadStatus};
use perihelion_engine::graph::Frontier;
use perihelion_engine::ids::{RunId, ThreadId};

/// Writes rows as a run would leave them; every write takes one second.
struct Pen {
    rows: Rows,
    now: DateTime<Utc>,
}

impl Pen {
    fn new() -> Self {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let info = ThreadInfo {
            id: ThreadId(uuid::Uuid::from_u128(7)),
            graph: "swarm".into(),
            title: None,
            root: None,
            namespace: String::new(),
            tenant: "default".into(),
            head: 0,
            status: ThreadStatus::Idle,
            error: None,
            fence: 0,
            owner: None,
            lease_until: None,
            forked_from: None,
            created_at: now,
            updated_at: now,
            archived: None,
        };
        Self {
            rows: Rows { info, runs: vec![], steps: vec![], effects: vec![], children: vec![] },
            now,
        }
    }

    fn tick(&mut self) -> DateTime<Utc> {
        self.now += TimeDelta::seconds(1);
        self.now
    }

    fn begin(&mut self) {
        let number = u32::try_from(self.rows.runs.len()).unwrap() + 1;
        let started_at = self.tick();
        let id = RunId(uuid::Uuid::from_u128(u128::from(number)));
        let status = RunStatus::Running;
        self.rows.runs.push(RunRow {
            id,
            number,
            status,
            finish_reason: None,
            started_at,
            ended_at: None,
        });
    }

    fn end(&mut self, status: RunStatus) {
        let now = self.tick();
        let run = self.rows.runs.last_mut().unwrap();
        (run.status, run.ended_at) = (status, Some(now));
    }

    fn step(&mut self, kind: StepKind, written: Value, next: &[&str]) {
        let at = self.tick();
        self.rows.steps.push(StepRow {
            seq: self.rows.steps.len() as u64 + 1,
            kind,
            run: self.rows.runs.last().unwrap().id,
            schema_version: 1,
            delta: Encoded::json(&written, usize::MAX).unwrap(),
            frontier: serde_json::to_vec(&Frontier::of(next.iter().copied())).unwrap(),
            hash: [0; 32],
            at,
        });
    }

    /// A turn up to the supervisor's decision to send out the agents.
    fn turn(&mut self, agents: &[&str]) {
        self.begin();
        self.step(
            StepKind::Input,
            json!([{ "n": "__input__", "u": { "input_request": "q" } }]),
            &["preprocess"],
        );
        self.step(StepKind::Loop, json!([{ "n": "preprocess", "u": {} }]), &["supervisor"]);
        let sends: Vec<_> = agents.iter().map(|agent| json!({ "Node": agent })).collect();
        self.step(StepKind::Loop, json!([{ "n": "supervisor", "u": {}, "g": sends }]), agents);
    }

    /// An effect of the step under way; without an outcome it is only begun.
    fn effect(
        &mut self,
        task: u32,
        kind: EffectKind,
        name: &str,
        request: Value,
        outcome: Option<Value>,
    ) {
        let number = u32::try_from(self.rows.effects.len()).unwrap();
        let encode = |value: &Value| Encoded::json(value, usize::MAX).unwrap();
        let started_at = self.tick();
        let ended_at = outcome.as_ref().map(|_| self.tick());
        let failed = outcome.as_ref().is_some_and(|outcome| outcome.get("error").is_some());
        self.rows.effects.push(EffectRow {
            step: self.rows.steps.len() as u64 + 1,
            task,
            key: vec![u8::try_from(number).unwrap(); 32],
            number,
            kind,
            status: match &outcome {
                None => EffectStatus::Started,
                Some(_) if failed => EffectStatus::Failed,
                Some(_) => EffectStatus::Done,
            },
            name: name.to_owned(),
            request: encode(&request),
            outcome: outcome.as_ref().map(encode),
            attempt: 1,
            started_at,
            ended_at,
        });
    }

    fn chat(&mut self, role: &str, content: &str, calls: &[&str]) {
        let calls: Vec<_> = calls
            .iter()
            .map(|name| json!({ "id": format!("id-{name}"), "name": name, "arguments": {} }))
            .collect();
        let usage = json!({ "input_tokens": 10, "output_tokens": 1 });
        let answer =
            json!({ "content": content, "tool_calls": calls, "model": "m", "usage": usage });
        self.effect(0, EffectKind::Model, role, json!({}), Some(answer));
    }

    fn tool(&mut self, name: &str, outcome: Option<Value>) {
        self.effect(0, EffectKind::Tool, name, json!({ "arguments": {} }), outcome);
    }

    fn spans(&self, run: u32) -> Vec<Span> {
        project(&self.rows, run, View::default()).unwrap()
    }

    fn names(&self, run: u32) -> Vec<String> {
        self.spans(run).into_iter().map(|span| span.name).collect()
    }
}

const OPENING: [&str; 3] = [
    "invoke_workflow swarm",
    "graph.transition preprocess→supervisor",
    "graph.transition supervisor→a",
];

fn after_opening(names: Vec<String>) -> Vec<String> {
    assert_eq!(names[..3], OPENING);
    names[3..].to_vec()
}

fn work(result: Value) -> Value {
    json!([{ "n": "a", "u": { "results": [result] } }])
}

fn result(status: &str, reflection: &str) -> Value {
    json!({
        "id": "1.1.t", "agent": "a", "task": "t", "status": status, "output": "o", "reflection": reflection,
        "attempts": 3, "usage": {}, "turn": 1, "error": "secret words",
    })
}

#[test]
fn a_model_call_names_the_provider_that_answered() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    for provider in [json!("anthropic"), Value::Null] {
        let answer = json!({ "content": "", "model": "m", "provider": provider });
        pen.effect(0, EffectKind::Model, "agent", json!({}), Some(answer));
    }
    pen.end(RunStatus::Cancelled);
    let named = |span: &Span| {
        let attributes = crate::dialect::attributes(span, false);
        let provider = attributes.into_iter().find(|one| one.key.as_str() == names::PROVIDER);
        provider.map(|one| one.value.as_str().into_owned())
    };
    let providers: Vec<String> = pen.spans(1).iter().filter_map(named).collect();
    assert_eq!(providers, ["anthropic", "openai"]);
}

#[test]
fn a_wait_for_a_person_ends_a_trace_and_the_answer_starts_the_next() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.chat("agent", "", &["x"]);
    pen.effect(0, EffectKind::Interrupt, "approval", json!({}), None);
    pen.rows.effects.last_mut().unwrap().key = vec![9; 16];
    pen.end(RunStatus::Interrupted);
    let asked = pen.spans(1);
    assert_eq!(after_opening(pen.names(1)), ["invoke_agent a", "chat m", "interrupt approval"]);
    assert!(asked.iter().all(|span| !span.open), "nothing will be added to it");
    let answered_at = pen.tick();
    let question = pen.rows.effects.last_mut().unwrap();
    (question.status, question.ended_at) = (EffectStatus::Done, Some(answered_at));
    pen.begin();
    pen.tool("s.x", Some(json!({ "is_error": false, "text": "" })));
    pen.step(StepKind::Loop, work(result("success", "APPROVED")), &["supervisor"]);
    pen.end(RunStatus::Done);
    assert_eq!(pen.names(1).len(), asked.len());
    assert_eq!(
        pen.names(2),
        [
            "invoke_workflow swarm",
            "invoke_agent a",
            "execute_tool x",
            "graph.transition a→supervisor"
        ]
    );
    let second = pen.spans(2);
    assert_ne!(second[0].trace_id, asked[0].trace_id);
    assert_eq!(second[0].links[0].span_id, asked[0].span_id);
    assert_eq!(second[0].start, pen.rows.runs[1].started_at, "the wait is no part of it");
    let ids: std::collections::HashSet<SpanId> =
        asked.iter().chain(&second).map(|span| span.span_id).collect();
    assert_eq!(ids.len(), asked.len() + second.len());
}

#[test]
fn a_failed_run_shows_its_failed_step_and_is_resumed_in_the_same_trace() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.effect(0, EffectKind::Model, "agent", json!({}), Some(json!({ "error": "no endpoint" })));
    pen.end(RunStatus::Failed);
    pen.rows.info.error = Some("the node a failed: no endpoint".into());
    let spans = pen.spans(1);
    let failed: Vec<_> =
        spans.iter().filter(|span| span.failed()).map(|span| span.name.as_str()).collect();
    assert_eq!(failed, ["invoke_workflow swarm", "invoke_agent a", "chat"]);
    let why = |span: &Span| span.status.clone();
    assert_eq!(why(&spans[0]), Status::Error { message: "the run failed".into() });
    assert_eq!(why(&spans[4]), Status::Error { message: "the model call failed".into() });
    let open = project(&pen.rows, 1, View { content: true, ..View::default() }).unwrap();
    assert_eq!(why(&open[0]), Status::Error { message: "the node a failed: no endpoint".into() });
    assert_eq!(why(&open[4]), Status::Error { message: "no endpoint".into() });
    assert!(spans[0].open && !spans[1].open);
    pen.begin();
    pen.step(StepKind::Loop, work(result("failed", "REJECTED")), &["supervisor"]);
    pen.end(RunStatus::Done);
    let spans = pen.spans(2);
    assert_eq!((spans[0].run, &spans[0].status, spans[0].open), (1, &Status::Ok, false));
    assert_eq!(spans[3].status, Status::Error { message: "rejected in each of 3 attempts".into() });
}

#[test]
fn the_time_between_a_crash_and_its_resumption_is_nobodys_work() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.now += TimeDelta::hours(3);
    pen.begin();
    pen.chat("agent", "done", &[]);
    pen.step(StepKind::Loop, work(result("success", "APPROVED")), &["supervisor"]);
    pen.end(RunStatus::Done);
    let spans = pen.spans(2);
    assert_eq!(spans[3].name, "invoke_agent a");
    assert_eq!(spans[3].start, pen.rows.runs[1].started_at);
}

/// Found by the torture: a call that a wrong clock dated after the next trace had begun was in neither.
#[test]
fn the_work_of_a_committed_step_is_in_its_trace_with_any_clock() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.chat("agent", "", &["x"]);
    pen.tool("s.x", Some(json!({ "is_error": false, "text": "" })));
    pen.step(StepKind::Loop, work(result("success", "APPROVED")), &["supervisor"]);
    pen.end(RunStatus::Failed);
    let before = pen.names(1);
    let late = pen.now + TimeDelta::hours(1);
    pen.rows.effects.last_mut().unwrap().ended_at = Some(late);
    pen.turn(&["a"]);
    assert_eq!(pen.names(1), before, "{:?}", pen.rows.effects.last());
    assert_eq!(after_opening(before)[2], "execute_tool x");
}

/// Found by the torture test: a call whose outcome a person decided after the delivery of the trace turned into an
/// unsent call, which no collector has.
#[test]
fn a_call_settled_in_a_later_trace_is_shown_as_sent() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.chat("agent", "", &["x"]);
    pen.tool("s.x", None);
    // The process died, and the next one asked again before it came to the call.
    pen.chat("agent", "", &["x"]);
    pen.effect(0, EffectKind::Interrupt, "outcome_unknown", json!({}), None);
    pen.rows.effects.last_mut().unwrap().key = vec![9; 16];
    pen.end(RunStatus::Interrupted);
    let before: Vec<_> = pen.spans(1).iter().filter(|span| !span.open).map(|s| s.span_id).collect();
    pen.begin();
    let settled_at = pen.tick();
    let call = pen.rows.effects.iter_mut().find(|row| row.kind == EffectKind::Tool).unwrap();
    (call.status, call.ended_at) = (EffectStatus::Done, Some(settled_at));
    let after = pen.spans(1);
    assert!(after.iter().all(|span| before.contains(&span.span_id)), "{after:#?}");
    assert!(pen.names(2).contains(&"execute_tool x".to_owned()), "{:?}", pen.names(2));
}

/// An edit is a separate trace, and so are its consequences.
#[test]
fn an_edit_of_the_state_shows_as_a_transition_by_a_person() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.end(RunStatus::Cancelled);
    pen.begin();
    pen.step(StepKind::Edit, json!([{ "n": "supervisor", "u": {} }]), &["qa"]);
    pen.end(RunStatus::Done);
    pen.begin();
    pen.step(StepKind::Loop, json!([{ "n": "qa", "u": { "answer": "x" }, "g": [] }]), &[]);
    pen.end(RunStatus::Done);
    assert_eq!(pen.names(2), ["invoke_workflow swarm", "graph.transition supervisor→qa"]);
    assert!(matches!(pen.spans(2)[1].about, About::Transition { reason: Reason::Edit, .. }));
    assert_eq!(
        pen.names(3),
        ["invoke_workflow swarm", "invoke_agent qa", "graph.transition qa→__end__"]
    );
}

#[test]
fn calls_that_were_refused_before_they_were_sent_are_there_without_the_models_words() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.chat("agent", "", &["no-such-tool", "x"]);
    pen.tool("s.x", Some(json!({ "is_error": true, "text": "" })));
    pen.chat("agent", "done", &[]);
    pen.chat("reflector", "not json", &[]);
    pen.chat("reflector", r#"```{"status":"FIXED","refined_output":" ","feedback":null}```"#, &[]);
    pen.step(StepKind::Loop, work(result("success", "APPROVED")), &["supervisor"]);
    pen.end(RunStatus::Done);
    assert_eq!(
        after_opening(pen.names(1)),
        [
            "invoke_agent a",
            "chat m",
            "execute_tool x",
            "execute_tool",
            "chat m",
            "reflect",
            "chat m",
            "chat m",
            "graph.transition a→supervisor"
        ]
    );
    let spans = pen.spans(1);
    assert!(matches!(
        &spans[3].about,
        About::Agent { tools, usage, .. } if tools.len() == 1 && usage.input_tokens == 40
    ));
    // A repair is no second round.
    assert!(matches!(
        &spans[8].about,
        About::Reflection { verdict: Some(verdict), attempt: 1, .. } if verdict == "APPROVED"
    ));
    assert_eq!(spans[8].links[0].span_id, spans[7].span_id, "the answer that was judged");
}

#[test]
fn a_call_whose_outcome_is_unknown_is_open_until_it_is_settled() {
    let mut pen = Pen::new();
    pen.turn(&["a"]);
    pen.tool("s.x", None);
    let spans = pen.spans(1);
    let call = spans.last().unwrap();
    assert!(call.open && spans[0].open && call.status == Status::Unset);
}

#[test]
fn a_missing_or_deleted_run_is_an_error() {
    let mut pen = Pen::new();
    assert!(matches!(project(&pen.rows, 1, View::default()), Err(Error::NeverRan(_))));
    pen.turn(&["a"]);
    pen.end(RunStatus::Done);
    let unknown = project(&pen.rows, 2, View::default());
    assert!(matches!(unknown, Err(Error::UnknownRun { run: 2, newest: 1, .. })));
    pen.rows.steps.clear();
    assert!(matches!(project(&pen.rows, 1, View::default()), Err(Error::Truncated { .. })));
}
