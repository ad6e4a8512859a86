//! The state of a hosted thread: its values as JSON, and their checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use perihelion_engine::graph::{Cause, State, Update};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::frames::Step;

/// The state of a hosted thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Mirror {
    #[serde(flatten)]
    pub values: Map<String, Value>,
    #[serde(rename = "__perihelion__")]
    pub place: Arc<Place>,
}

/// The position of a thread among the checkpoints of its child.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// The newest committed checkpoint; `None` before the first.
    pub checkpoint: Option<String>,
    /// The thread under which the child stores it; in a copied thread, the original.
    pub thread: Option<String>,
    /// The step at which this thread last branched off from the child's checkpoints.
    pub line: Option<String>,
    pub next: Vec<String>,
    pub tasks: Value,
    pub metadata: Value,
    /// Names of values that the output of the graph does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Whether the step wrote nothing that the output of the graph has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Whether the run pauses here.
    pub pauses: bool,
    /// The input or command for the next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// The request of the last run, for a process that continues it without one.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub request: Value,
}

/// The input or command of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pending {
    Input(Value),
    /// An update of the state and the nodes that run next.
    Command(Value),
}

/// The changes of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Change>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The input or command of a new run, with its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<(Pending, Value)>,
}

/// The change of one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Set(Value),
    /// Replaces the elements of a list between two positions.
    Splice {
        from: usize,
        to: usize,
        items: Vec<Value>,
    },
    Removed,
}

impl Update for Changes {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.place.is_none() && self.pending.is_none()
    }
}

impl State for Mirror {
    type Update = Changes;
    const SCHEMA_VERSION: u32 = 1;

    fn apply(&mut self, update: Changes) {
        for (name, change) in update.values {
            match change {
                Change::Set(value) => drop(self.values.insert(name, value)),
                Change::Removed => drop(self.values.shift_remove(&name)),
                Change::Splice { from, to, items } => {
                    if let Some(Value::Array(list)) = self.values.get_mut(&name)
                        && from <= to
                        && to <= list.len()
                    {
                        list.splice(from..to, items);
                    }
                }
            }
        }
        if let Some(place) = update.place {
            self.place = Arc::new(place);
        }
        if let Some((pending, request)) = update.pending {
            let place = Arc::make_mut(&mut self.place);
            place.pending = Some(pending);
            place.request = request;
            place.pauses = false;
        }
    }

    fn upcast(_version: u32, stored: Value) -> Result<Value, Cause> {
        Ok(stored)
    }
}

impl Mirror {
    /// Returns the changes from this state to a checkpoint.
    pub fn changes_to(&self, step: Step, thread: String, line: String) -> Changes {
        let mut values: BTreeMap<String, Change> = BTreeMap::new();
        for name in self.values.keys().filter(|name| !step.values.contains_key(*name)) {
            values.insert(name.clone(), Change::Removed);
        }
        for (name, value) in step.values {
            match self.values.get(&name) {
                Some(before) if *before == value => {}
                Some(Value::Array(before)) if value.is_array() => {
                    values.insert(name, splice(before, value));
                }
                _ => drop(values.insert(name, Change::Set(value))),
            }
        }
        let place = Place {
            checkpoint: Some(step.checkpoint),
            thread: Some(thread),
            line: Some(line),
            next: step.next,
            tasks: step.tasks,
            metadata: step.metadata,
            hidden: step.hidden,
            silent: step.silent,
            pauses: step.pauses,
            pending: None,
            request: self.place.request.clone(),
        };
        Changes { values, place: Some(place), pending: None }
    }
}

/// Returns the change of a list without the equal elements at both ends.
fn splice(before: &[Value], after: Value) -> Change {
    let Value::Array(mut after) = after else { return Change::Set(after) };
    let kept = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
    let ends = before[kept..].iter().rev().zip(after[kept..].iter().rev());
    let tail = ends.take_while(|(old, new)| old == new).count();
    after.truncate(after.len() - tail);
    Change::Splice { from: kept, to: before.len() - tail, items: after.split_off(kept) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// X13
    #[test]
    fn any_list_becomes_any_other_by_its_change() {
        let lists = [
            json!([]),
            json!([1]),
            json!([1, 2, 3]),
            json!([1, 9, 3]),
            json!([3]),
            json!([1, 2, 3, 4]),
            json!([1, 1, 1]),
        ];
        for before in &lists {
            for after in &lists {
                let mut state = Mirror::default();
                state.values.insert("list".into(), before.clone());
                let step = |values: &Value| Step {
                    checkpoint: "1".into(),
                    values: serde_json::from_value(json!({ "list": values })).unwrap(),
                    hidden: Vec::new(),
                    silent: false,
                    next: Vec::new(),
                    tasks: Value::Null,
                    metadata: Value::Null,
                    pauses: false,
                };
                state.values.insert("gone".into(), json!(1));
                let changes = state.changes_to(step(after), "t".into(), "1".into());
                let stored = serde_json::to_value(&changes).unwrap();
                state.apply(Changes::deserialize(stored).unwrap());
                assert_eq!(json!(state.values), json!({ "list": after }), "{before} to {after}");
            }
        }
    }

    #[test]
    fn an_appended_element_is_all_that_is_written() {
        let before = [json!({ "a": 1 }), json!({ "b": 2 })];
        let change = splice(&before, json!([{ "a": 1 }, { "b": 2 }, { "c": 3 }]));
        assert_eq!(change, Change::Splice { from: 2, to: 2, items: vec![json!({ "c": 3 })] });
    }
}
