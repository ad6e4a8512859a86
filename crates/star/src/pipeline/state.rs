//! The state of a pipeline: that of its stages, and what every pipeline keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outcome::{Attempt, Outcome};
use crate::{Artifact, CallRecord, Instruction, Sources, Spent};
use perihelion_engine::graph::{Blob, Blobs as _, Dict, Log, State, Update};

/// Version of what every pipeline keeps, beside that of its stages' state.
const OWN_VERSION: u32 = 1;

/// What the version of the stages' state counts in that of the whole.
const VERSIONS: u32 = 100;

/// The state of a pipeline; `W` is that of its stages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, bound = "")]
pub struct PipelineState<W: State> {
    pub work: W,
    /// Tool calls so far, of all attempts.
    pub calls: Log<CallRecord>,
    /// Artifacts that the pipeline made.
    pub artifacts: Dict<Artifact>,
    /// What of the open world the agent was shown so far.
    pub tainted_by: Sources,
    /// What people who approved its calls wanted besides.
    pub instructions: Log<Instruction>,
    pub spent: Spent,
    /// Stages that have run.
    pub stages: u32,
    pub attempt: Attempt,
    pub outcome: Outcome,
}

/// A partial update of a [`PipelineState`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, bound = "")]
pub struct PipelineUpdate<W: State> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<W::Update>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, Artifact>,
    #[serde(skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Stages that ran: added to those before.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub stages: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl<W: State> Update for PipelineUpdate<W> {
    fn is_empty(&self) -> bool {
        self.work.as_ref().is_none_or(Update::is_empty)
            && self.calls.is_empty()
            && self.artifacts.is_empty()
            && self.tainted_by.is_empty()
            && self.instructions.is_empty()
            && self.spent.is_none()
            && self.stages == 0
            && self.attempt.is_none()
            && self.outcome.is_none()
    }

    fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut Blob)) {
        self.artifacts.each_blob_mut(see);
        if let Some(work) = &mut self.work {
            work.each_blob_mut(see);
        }
    }
}

impl<W: State> State for PipelineState<W> {
    type Update = PipelineUpdate<W>;
    const SCHEMA_VERSION: u32 = W::SCHEMA_VERSION * VERSIONS + OWN_VERSION;

    fn apply(&mut self, update: PipelineUpdate<W>) {
        if let Some(work) = update.work {
            self.work.apply(work);
        }
        for call in update.calls {
            self.calls.push_back_mut(call);
        }
        for (key, artifact) in update.artifacts {
            self.artifacts.insert_mut(key, artifact);
        }
        self.tainted_by.extend(update.tainted_by);
        for instruction in update.instructions {
            self.instructions.push_back_mut(instruction);
        }
        self.spent += update.spent.unwrap_or_default();
        self.stages += update.stages;
        self.attempt = update.attempt.unwrap_or_else(|| std::mem::take(&mut self.attempt));
        self.outcome = update.outcome.unwrap_or_else(|| std::mem::take(&mut self.outcome));
    }

    fn upcast(version: u32, mut stored: Value) -> Result<Value, String> {
        if let Some(work) = stored.get_mut("work").filter(|work| !work.is_null()) {
            *work = W::upcast(version / VERSIONS, work.take())?;
        }
        Ok(stored)
    }

    fn each_blob(&self, see: &mut dyn FnMut(&Blob)) {
        self.artifacts.each_blob(see);
        self.work.each_blob(see);
    }
}
