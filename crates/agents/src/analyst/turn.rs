//! The state that the stages of one turn pass on; all of it is stored, so that the turn can be inspected and
//! reproduced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use perihelion_analysis::chart::Chart;
use perihelion_analysis::joins::JoinPath;
use perihelion_analysis::numbers::Number;
use perihelion_analysis::{Catalogue, Dialect};

perihelion_engine::graph_state! {
    pub struct Turn, update TurnUpdate, version 1 {
        survey: Option<Survey> => overwrite,
        intent: Option<Intent> => overwrite,
        /// The user's answers, in all rounds.
        answers: Vec<Answered> => overwrite,
        rounds: usize => overwrite,
        assumptions: Vec<String> => overwrite,
        pack: Option<Pack> => overwrite,
        draft: Option<SqlDraft> => overwrite,
        checked: Option<Checked> => overwrite,
        reviews: Vec<SqlReview> => overwrite,
        /// Statements that did not do, oldest first.
        attempts: Vec<Attempt> => overwrite,
        triages: Vec<SqlTriage> => overwrite,
        preview: Option<Preview> => overwrite,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    pub dialect: Dialect,
    pub catalogue: Catalogue,
    /// The server guards statements itself, and takes them as they are written.
    pub guards_itself: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub question: String,
    pub answer: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pack {
    pub table_docs: Vec<Doc>,
    pub field_docs: Vec<Doc>,
    pub relationship_docs: Vec<Doc>,
    pub suggested_tables: Vec<String>,
    pub suggested_join_paths: Vec<JoinPath>,
    #[serde(default)]
    pub metric_docs: Vec<Doc>,
    #[serde(default)]
    pub verified_queries: Vec<Doc>,
    #[serde(default)]
    pub newest: Vec<Newest>,
    /// The places of the question's words in the data.
    pub values: Vec<String>,
    /// The share of the question's words that the schema knows.
    pub evidence: f64,
}

/// A piece of the notes about the database, with an ID for citations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doc {
    pub id: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest {
    pub table: String,
    pub column: String,
    pub value: String,
    /// It is the newest of the first rows only; there may be newer ones.
    #[serde(default)]
    pub is_sample: bool,
}

/// A statement that passed the guard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// As it is sent.
    pub sql: String,
    /// As the guard wrote it, without a bound on its rows.
    pub guarded: String,
    pub tables: Vec<String>,
    /// The effect of a join on its aggregates.
    pub warnings: Vec<String>,
    /// Its aggregates that may count a row more than once.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    pub secondary_problem: Option<String>,
    /// The database's estimate before it runs.
    pub plan: Option<String>,
    /// Metrics and verified queries in it, by their names in the answer.
    #[serde(default)]
    pub trusted: Vec<String>,
}

/// An aggregate that may count a row more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    pub text: String,
    /// The statement itself is a reason for it; otherwise only a count of the data can be.
    pub is_reported: bool,
    /// Counts joined rows and rows of the table.
    pub probe: Option<String>,
}

/// A statement that did not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub sql: String,
    /// `guard`, `review` or `database`.
    pub by: String,
    pub error: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    pub truncated: bool,
    pub elapsed_ms: Option<u64>,
    /// How many times a row is counted, for each doubt about the statement that could be measured.
    #[serde(default)]
    pub factors: Vec<Option<f64>>,
    #[serde(default)]
    pub freshness: Vec<String>,
    #[serde(default)]
    pub numbers: Vec<Number>,
}

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
    #[schemars(length(max = 200))]
    pub reason: String,
    /// Who should continue, in a word.
    #[schemars(length(max = 20))]
    pub next: String,
}

/// A question to the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClarifyingQuestion {
    #[schemars(length(max = 20))]
    pub id: String,
    #[schemars(length(max = 300))]
    pub question: String,
    /// Answers to choose from; may be empty.
    #[schemars(length(max = 6), inner(length(max = 80)))]
    pub options: Vec<String>,
}

/// The answer in the stage `clarify`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClarificationAnswer {
    pub needed: bool,
    #[schemars(length(max = 3))]
    pub questions: Vec<ClarifyingQuestion>,
    /// What is taken for granted when continuing.
    #[schemars(length(max = 6), inner(length(max = 200)))]
    pub assumptions: Vec<String>,
}

/// The answer in the stage `generate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqlDraft {
    pub sql: String,
    /// The same in the second dialect.
    pub secondary_sql: Option<String>,
    #[schemars(length(max = 16), inner(length(max = 80)))]
    pub used_tables: Vec<String>,
    #[schemars(length(max = 6), inner(length(max = 200)))]
    pub assumptions: Vec<String>,
    #[schemars(length(max = 200))]
    pub notes: String,
}

/// The answer in the stage `review`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqlReview {
    pub approved: bool,
    #[schemars(length(max = 6), inner(length(max = 300)))]
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
    #[schemars(length(max = 200))]
    pub reason: String,
    /// The statement to try, with RETRY_WITH_PATCH.
    pub sql: Option<String>,
    /// What to ask the user, with ASK_CLARIFICATION.
    #[schemars(length(max = 300))]
    pub question: Option<String>,
}

/// The answer in the stage `interpret`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interpretation {
    pub answer: String,
    #[schemars(length(max = 6), inner(length(max = 300)))]
    pub highlights: Vec<String>,
    #[schemars(length(max = 4), inner(length(max = 200)))]
    pub follow_ups: Vec<String>,
    pub chart: Option<Chart>,
}
