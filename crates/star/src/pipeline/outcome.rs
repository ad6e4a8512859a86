//! How far a pipeline is: under way, found, judged or failed.

use serde::{Deserialize, Serialize};

use crate::{AgentError, Finding};

/// Which attempt at the assignment it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// Why reflection rejected the attempt before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// How far a pipeline is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// Stages are still to run.
    #[default]
    Working,
    /// A stage has found something, which is still to be judged.
    Found { finding: Finding },
    /// The finding stands.
    Judged { finding: Finding, reflection: String },
    /// The agent failed; `finding` is what there is.
    Failed {
        error: AgentError,
        #[serde(default)]
        finding: Finding,
        #[serde(default)]
        reflection: Option<String>,
    },
}
