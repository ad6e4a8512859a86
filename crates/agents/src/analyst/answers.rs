//! What models answer in each stage; the names and keys are those of the contract.

use perihelion_analysis::chart::Chart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of question it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IntentKind {
    /// It needs SQL and an answer.
    #[default]
    DataQa,
    /// It needs SQL, an answer and a chart.
    AnalyticsReport,
    /// It is about the database itself, or general.
    GeneralQa,
    /// This database cannot help.
    OutOfScope,
}

/// The answer in the stage `intent`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Intent {
    pub intent: IntentKind,
    /// From 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    pub reason: String,
    /// Who should continue, in a word.
    pub next: String,
}

/// A question to the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClarifyingQuestion {
    pub id: String,
    pub question: String,
    /// Answers to choose from; may be empty.
    pub options: Vec<String>,
}

/// The answer in the stage `clarify`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClarificationAnswer {
    pub needed: bool,
    pub questions: Vec<ClarifyingQuestion>,
    /// What is taken for granted when continuing.
    pub assumptions: Vec<String>,
}

/// The answer in the stage `generate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqlDraft {
    pub sql: String,
    /// The same in the second dialect.
    pub secondary_sql: Option<String>,
    pub used_tables: Vec<String>,
    pub assumptions: Vec<String>,
    pub notes: String,
}

/// The answer in the stage `review`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqlReview {
    pub approved: bool,
    pub problems: Vec<String>,
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TriageDecision {
    RetryWithPatch,
    AskClarification,
    Stop,
}

/// The answer in the stage `triage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqlTriage {
    pub decision: TriageDecision,
    pub reason: String,
    /// The statement to try, with RETRY_WITH_PATCH.
    pub sql: Option<String>,
    /// What to ask the user, with ASK_CLARIFICATION.
    pub question: Option<String>,
}

/// The answer in the stage `interpret`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interpretation {
    pub answer: String,
    pub highlights: Vec<String>,
    pub follow_ups: Vec<String>,
    pub chart: Option<Chart>,
}
