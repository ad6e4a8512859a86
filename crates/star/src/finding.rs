//! What an agent found, before it is judged and becomes a result.

use serde::{Deserialize, Serialize};

use super::result::{Chart, Source, Table};

/// What an agent found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    pub output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Citations of the output that named nothing and were removed.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub citations_removed: u64,
}

impl Finding {
    /// Makes a finding of words.
    pub fn text(output: impl Into<String>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    /// Adds the table that the words are about.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.table = Some(table);
        self
    }

    /// Adds a chart.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        self.chart = Some(chart);
        self
    }

    /// Says how sure the agent is, from 0 to 1.
    #[must_use]
    pub fn confidence(mut self, confidence: f64) -> Self {
        self.confidence = Some(confidence.clamp(0.0, 1.0));
        self
    }

    /// Says how many citations of the words named nothing and were removed.
    #[must_use]
    pub fn citations_removed(mut self, removed: u64) -> Self {
        self.citations_removed = removed;
        self
    }

    /// Adds where a fact comes from.
    #[must_use]
    pub fn source(mut self, source: Source) -> Self {
        self.sources.push(source);
        self
    }
}
