//! What the runs of a suite gave; saved as JSON, so that a later one can be compared with it.

use serde::{Deserialize, Serialize};

/// What a model said of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub passed: bool,
    pub reason: String,
}

/// One run of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub thread_id: String,
    pub passed: bool,
    /// What was not as expected; empty where it passed.
    pub findings: Vec<String>,
    pub seconds: f64,
    pub tokens: u64,
    #[serde(default)]
    pub cost_usd: f64,
    pub tool_calls: u64,
}

/// All runs of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    pub name: String,
    /// The share of runs that must pass.
    pub require: f64,
    pub runs: Vec<RunRecord>,
}

/// All cases of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub suite: String,
    /// The model, or what else was judged.
    pub model: String,
    pub cases: Vec<CaseRecord>,
}

impl CaseRecord {
    /// Returns how many runs passed.
    pub fn passed_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.passed).count()
    }

    /// Returns the share of runs that passed; none ran: 0.
    pub fn share(&self) -> f64 {
        if self.runs.is_empty() {
            return 0.0;
        }
        self.passed_runs() as f64 / self.runs.len() as f64
    }

    /// Tells whether enough runs passed.
    pub fn passed(&self) -> bool {
        !self.runs.is_empty() && self.share() >= self.require
    }

    /// Returns the mean of a figure over the runs.
    pub fn mean(&self, figure: impl Fn(&RunRecord) -> f64) -> f64 {
        if self.runs.is_empty() {
            return 0.0;
        }
        self.runs.iter().map(figure).sum::<f64>() / self.runs.len() as f64
    }
}

impl Record {
    /// Tells whether every case passed.
    pub fn passed(&self) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(CaseRecord::passed)
    }
}
