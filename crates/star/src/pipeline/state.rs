//! The state of a pipeline, which contains that of its stages, and the steps that change it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentError, Artifact, CallRecord, ErrorKind, Finding, Instruction, ReflectionVerdict, Sources,
    Spent, model::stop_or_failure,
};
use perihelion_engine::graph::{Blob, Blobs as _, Cause, Dict, Log, NodeError, State, Update};
use perihelion_llm::{self as llm, Role};

/// Version of the fields that every pipeline stores, in addition to the version of its stages' state.
const OWN_VERSION: u32 = 1;

/// The weight of the version of the stages' state in the whole version.
const VERSIONS: u32 = 100;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, bound = "")]
pub struct PipelineState<W: State> {
    pub work: W,
    /// Tool calls so far, of all attempts.
    pub calls: Log<CallRecord>,
    pub artifacts: Dict<Artifact>,
    pub tainted_by: Sources,
    pub instructions: Log<Instruction>,
    pub spent: Spent,
    pub stages: u32,
    pub attempt: Attempt,
    pub outcome: Outcome,
}

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

    fn upcast(version: u32, mut stored: Value) -> Result<Value, Cause> {
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// Why reflection rejected the attempt before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    #[default]
    Working,
    /// A stage has found something, which is still to be judged.
    Found { finding: Finding },
    /// Reflection did not reject the finding.
    Judged { finding: Finding, reflection: ReflectionVerdict },
    /// The agent failed; `finding` is its partial result.
    Failed {
        error: AgentError,
        #[serde(default)]
        finding: Finding,
        reflection: Option<ReflectionVerdict>,
    },
}

/// The continuation of a pipeline after a stage, with the stage's update.
#[derive(Clone, Debug)]
pub struct Step<W: State> {
    pub(super) update: W::Update,
    pub(super) to: To,
}

#[derive(Clone, Debug)]
pub(super) enum To {
    Next,
    Stage(String),
    Done(Box<Finding>),
}

impl<W: State> Step<W> {
    pub fn next(update: W::Update) -> Self {
        Self { update, to: To::Next }
    }

    /// Goes to a stage by name, an earlier one also.
    pub fn goto(stage: impl Into<String>, update: W::Update) -> Self {
        Self { update, to: To::Stage(stage.into()) }
    }

    /// Ends with a finding, which reflection judges.
    pub fn done(finding: Finding) -> Self {
        Self::done_with(W::Update::default(), finding)
    }

    pub fn done_with(update: W::Update, finding: Finding) -> Self {
        Self { update, to: To::Done(Box::new(finding)) }
    }

    /// Hands the task back as one for another agent.
    ///
    /// # Errors
    /// Always: a stage returns it as it is.
    pub fn decline(reason: impl Into<String>) -> StageResult<W> {
        Err(AgentError::new(ErrorKind::PlanningDeclined, reason).into())
    }
}

/// Why a stage did not end well.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A person must answer first, or the run stops; there is no update.
    #[error(transparent)]
    Stop(#[from] NodeError),
    /// The agent failed; the run continues without it.
    #[error(transparent)]
    Failed(#[from] AgentError),
}

impl From<llm::Error> for StageError {
    fn from(error: llm::Error) -> Self {
        match stop_or_failure(error) {
            Ok(error) => Self::Failed(error.into()),
            Err(stop) => Self::Stop(stop),
        }
    }
}

pub type StageResult<W> = Result<Step<W>, StageError>;

/// A request to a model: its role, stage, answer format and prompt.
#[derive(Clone, Debug)]
pub struct Ask {
    pub(super) role: Role,
    pub(super) stage: String,
    pub(super) schema: String,
    pub(super) prompt: Option<(String, Value)>,
}

impl Ask {
    /// Names the role, the word sent as `x-perihelion-stage`, and the schema of the answer.
    pub fn new(role: Role, stage: impl Into<String>, schema: impl Into<String>) -> Self {
        let stage = stage.into();
        let schema = schema.into();
        Self { role, stage, schema, prompt: None }
    }

    /// Names the prompt template and gives its variables, which are escaped.
    #[must_use]
    pub fn prompt(mut self, template: impl Into<String>, variables: impl Serialize) -> Self {
        let variables = serde_json::to_value(variables).unwrap_or_default();
        self.prompt = Some((template.into(), variables));
        self
    }
}
