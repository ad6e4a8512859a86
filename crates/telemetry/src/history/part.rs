//! A run, or a whole thread, as it is compared: its steps with what their nodes asked and got.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use regex::{Captures, Regex};
use serde::Serialize;
use serde_json::{Value, json};

use perihelion_engine::checkpoint::{
    EffectKind, EffectRow, Error, Lineage, RunRow, StepKind, StepRow, Store, ThreadFilter,
    ThreadInfo,
};
use perihelion_engine::graph::{Frontier, StoredWrite, Task, subgraph_step};
use perihelion_engine::ids::{RunId, ThreadId};

/// Steps read from the store at a time.
const PAGE: u32 = 256;

#[derive(Clone, Debug)]
pub struct StepOf {
    pub row: StepRow,
    /// The nodes that ran, in frontier order, each with its write.
    pub wrote: Vec<(String, Value)>,
    /// The next nodes, their inputs, and joins that wait.
    pub next: Value,
    /// Calls, questions and draws, in order of task and number.
    pub effects: Vec<Effect>,
    /// Those of the subgraphs that its nodes ran, such as pipelines of agents: they count, and are not compared.
    pub below: Vec<Effect>,
}

#[derive(Clone, Debug)]
pub struct Effect {
    pub task: u32,
    pub kind: EffectKind,
    pub name: String,
    pub request: Value,
    pub outcome: Value,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    pub steps: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub questions: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// US dollars, where prices were set.
    pub cost_usd: f64,
    /// Seconds in which a run was under way; waiting for people is not counted.
    pub seconds: f64,
}

#[derive(Clone, Debug)]
pub struct Part {
    pub info: ThreadInfo,
    pub run: Option<u32>,
    pub steps: Vec<StepOf>,
    pub totals: Totals,
    /// Values that always differ, and their replacements.
    names: HashMap<String, &'static str>,
    any_name: Regex,
}

impl Part {
    /// Reads one run of a thread, or all of it.
    ///
    /// # Errors
    /// [`Error::UnknownRun`], and whatever the store reports.
    pub async fn read(
        store: &dyn Store,
        thread: ThreadId,
        run: Option<u32>,
    ) -> Result<Self, Error> {
        let info = store.info(thread).await?;
        let lineage = Lineage::read(store, thread).await?;
        let runs = store.runs(thread).await?;
        let wanted = match run {
            None => None,
            Some(number) => {
                Some(runs.iter().find(|one| one.number == number).ok_or(Error::UnknownRun {
                    thread,
                    number,
                    newest: runs.len(),
                })?)
            }
        };
        let mut names = HashMap::from([(thread.to_string(), "<thread>")]);
        let mut steps = Vec::new();
        let mut before = None;
        let mut subgraphs = Subgraphs::default();
        loop {
            let page = store.history(thread, before, PAGE).await?;
            let Some(oldest) = page.last().map(|row| row.seq) else { break };
            for row in page {
                if let Some(owner) = lineage.owner(&row) {
                    names.insert(owner.id.to_string(), "<thread>");
                }
                names.insert(row.run.to_string(), "<run>");
                let effects = lineage.effects(store, &row).await?;
                for effect in &effects {
                    note_names(&mut names, effect);
                }
                if wanted.is_none_or(|run| run.id == row.run) {
                    let below = match lineage.owner(&row) {
                        Some(owner) => subgraphs.effects(store, owner, row.seq).await?,
                        None => Vec::new(),
                    };
                    steps.push(StepOf::new(thread, row, &effects, &below)?);
                }
            }
            before = Some(oldest);
        }
        steps.reverse();
        let totals = totals(&steps, &runs, wanted.map(|run| run.id));
        // The longest first, since one may begin another.
        let mut longest: Vec<&String> = names.keys().collect();
        longest.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let any_name: Vec<String> = longest.into_iter().map(|name| regex::escape(name)).collect();
        let any_name = any_name.join("|");
        // The names of a very long thread may be too many for one pattern; then they count as content.
        let any_name = Regex::new(&any_name)
            .or_else(|_| Regex::new(&regex::escape(&thread.to_string())))
            .map_err(Error::damaged)?;
        Ok(Self { info, run, steps, totals, names, any_name })
    }

    pub(super) fn plain(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.plain_text(text)),
            Value::Number(number) => match self.names.get(&number.to_string()) {
                Some(word) => Value::String((*word).to_owned()),
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.plain(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.plain(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn plain_text(&self, text: &str) -> String {
        let word = |found: &Captures<'_>| self.names.get(&found[0]).copied().unwrap_or_default();
        self.any_name.replace_all(text, word).into_owned()
    }
}

/// Notes the values of an effect that always differ.
///
/// A reading of the clock appears as microseconds, or as a date and time to the second; a model invents the IDs of its
/// calls.
fn note_names(names: &mut HashMap<String, &'static str>, effect: &EffectRow) {
    let Some(outcome) = &effect.outcome else { return };
    match effect.kind {
        EffectKind::Clock => {
            let read = outcome.decode::<i64>().ok();
            if let Some(time) = read.and_then(DateTime::<Utc>::from_timestamp_micros) {
                names.insert(time.timestamp_micros().to_string(), "<time>");
                names.insert(time.to_rfc3339_opts(SecondsFormat::Secs, true), "<time>");
            }
        }
        EffectKind::Model => {
            let answer = outcome.decode::<Value>().unwrap_or_default();
            let calls = answer["tool_calls"].as_array();
            for id in calls.into_iter().flatten().filter_map(|call| call["id"].as_str()) {
                if !id.is_empty() {
                    names.insert(id.to_owned(), "<call>");
                }
            }
        }
        _ => {}
    }
}

impl StepOf {
    fn new(
        thread: ThreadId,
        row: StepRow,
        effects: &[EffectRow],
        below: &[EffectRow],
    ) -> Result<Self, Error> {
        let damaged = |error: Error| match error {
            Error::Damaged(reason) => Error::Corrupt { thread, seq: row.seq, reason },
            other => other,
        };
        let written = row.written().map_err(damaged)?;
        let Frontier { tasks, joins } = row.frontier().map_err(damaged)?;
        let task = |task: Task| match task.input {
            None => json!(task.node),
            Some(input) => json!({ "node": task.node, "input": input }),
        };
        let nodes: Vec<Value> = tasks.into_iter().map(task).collect();
        let next = json!({ "nodes": nodes, "joins": joins });
        let wrote = |one: StoredWrite| (one.node, one.update);
        let read = |effect: &EffectRow| -> Result<Effect, Error> {
            Ok(Effect {
                task: effect.task,
                kind: effect.kind,
                name: effect.name.clone(),
                request: effect.request.decode()?,
                outcome: effect.outcome.as_ref().map_or(Ok(Value::Null), |it| it.decode())?,
                ended_at: effect.ended_at,
            })
        };
        Ok(Self {
            wrote: written.into_iter().map(wrote).collect(),
            next,
            effects: effects.iter().map(read).collect::<Result<_, _>>()?,
            below: below.iter().map(read).collect::<Result<_, _>>()?,
            row,
        })
    }

    /// Returns the names of the nodes that ran; an input has its own name.
    pub fn nodes(&self) -> Vec<&str> {
        match self.row.kind {
            StepKind::Input => vec!["input"],
            _ => self.wrote.iter().map(|(node, _)| node.as_str()).collect(),
        }
    }
}

/// The threads of subgraphs, by the thread at the top of which they are, each read once.
#[derive(Default)]
struct Subgraphs(HashMap<ThreadId, Vec<ThreadInfo>>);

impl Subgraphs {
    /// Reads the effects of the subgraphs that ran in a step of a thread, at any depth.
    async fn effects(
        &mut self,
        store: &dyn Store,
        owner: &ThreadInfo,
        step: u64,
    ) -> Result<Vec<EffectRow>, Error> {
        let threads = match self.0.entry(owner.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let filter = ThreadFilter { root: Some(owner.top()), ..ThreadFilter::default() };
                place.insert(store.list(&filter).await?)
            }
        };
        let mut found = Vec::new();
        for one in threads {
            if subgraph_step(&one.namespace, &owner.namespace) == Some(step) {
                found.extend(store.effects(one.id, None).await?);
            }
        }
        Ok(found)
    }
}

fn totals(steps: &[StepOf], runs: &[RunRow], run: Option<RunId>) -> Totals {
    let mut totals = Totals { steps: steps.len() as u64, ..Totals::default() };
    for effect in steps.iter().flat_map(|step| step.effects.iter().chain(&step.below)) {
        match effect.kind {
            EffectKind::Model => {
                let usage = &effect.outcome["usage"];
                totals.model_calls += 1;
                totals.input_tokens += usage["input_tokens"].as_u64().unwrap_or(0);
                totals.output_tokens += usage["output_tokens"].as_u64().unwrap_or(0);
                totals.cost_usd += effect.outcome["nano_usd"].as_u64().unwrap_or(0) as f64 / 1e9;
            }
            EffectKind::Tool => totals.tool_calls += 1,
            EffectKind::Interrupt => totals.questions += 1,
            EffectKind::Clock | EffectKind::Random | EffectKind::Observed => {}
        }
    }
    let counted = runs.iter().enumerate().filter(|(_, one)| run.is_none_or(|run| run == one.id));
    let took = counted.map(|(at, one)| ended(one, runs.get(at + 1), steps) - one.started_at);
    totals.seconds = took.sum::<TimeDelta>().max(TimeDelta::zero()).as_seconds_f64();
    totals
}

/// Returns when a run ended; for a run whose process died, the time of its last known action before the next run.
fn ended(run: &RunRow, next: Option<&RunRow>, steps: &[StepOf]) -> DateTime<Utc> {
    let done = steps.iter().flat_map(|step| {
        let calls = step.effects.iter().filter_map(|effect| effect.ended_at);
        calls.chain([step.row.at])
    });
    let last = || done.filter(|at| next.is_none_or(|next| *at < next.started_at)).max();
    run.ended_at.or_else(last).unwrap_or(run.started_at).max(run.started_at)
}
