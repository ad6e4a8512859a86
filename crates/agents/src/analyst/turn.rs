//! What the stages of one turn hand on; all of it is kept, so that the turn can be looked at and reproduced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use perihelion_analysis::chart::Chart;
use perihelion_analysis::joins::JoinPath;
use perihelion_analysis::numbers::Number;
use perihelion_analysis::{Catalogue, Dialect};

perihelion_engine::graph_state! {
    /// The state of the analyst.
    pub struct Turn, update TurnUpdate, version 1 {
        survey: Option<Survey> => overwrite,
        intent: Option<Intent> => overwrite,
        /// What the user answered, over all rounds.
        answers: Vec<Answered> => overwrite,
        /// Rounds of questions that were put.
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

/// What the server is and holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    pub dialect: SqlDialect,
    pub catalogue: Catalogue,
    /// The server guards statements itself, and takes them as they are written.
    pub guards_itself: bool,
}

/// A dialect, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlDialect {
    Sqlite,
    Postgres,
    DuckDb,
    TSql,
}

impl From<SqlDialect> for Dialect {
    fn from(dialect: SqlDialect) -> Self {
        match dialect {
            SqlDialect::Sqlite => Self::Sqlite,
            SqlDialect::Postgres => Self::Postgres,
            SqlDialect::DuckDb => Self::DuckDb,
            SqlDialect::TSql => Self::TSql,
        }
    }
}

/// A question that the user answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub question: String,
    pub answer: String,
}

/// What a statement is grounded in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pack {
    pub table_docs: Vec<Doc>,
    pub field_docs: Vec<Doc>,
    pub relationship_docs: Vec<Doc>,
    pub suggested_tables: Vec<String>,
    pub suggested_join_paths: Vec<JoinPath>,
    /// Definitions of numbers that the question names.
    #[serde(default)]
    pub metric_docs: Vec<Doc>,
    /// Verified questions that are like this one, with their statements.
    #[serde(default)]
    pub verified_queries: Vec<Doc>,
    /// The newest values of the tables' dates.
    #[serde(default)]
    pub newest: Vec<Newest>,
    /// Where words of the question stand in the data.
    pub values: Vec<String>,
    /// The share of the question's words that the schema knows.
    pub evidence: f64,
}

/// A piece of what is known of the database, by an id that can be cited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doc {
    pub id: String,
    pub text: String,
}

/// The newest value of a column of dates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest {
    pub table: String,
    pub column: String,
    pub value: String,
}

/// A statement that passed the guard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// As it is sent.
    pub sql: String,
    /// As the guard wrote it, without a bound on its rows.
    pub guarded: String,
    /// Tables that it reads.
    pub tables: Vec<String>,
    /// What a join makes of its aggregates.
    pub warnings: Vec<String>,
    /// Counts joined rows against rows of the table, where one is multiplied.
    pub probe: Option<String>,
    /// What is wrong with the statement in the second dialect.
    pub secondary_problem: Option<String>,
    /// What the database estimates, before it runs.
    #[serde(default)]
    pub plan: Option<String>,
    /// Metrics and verified queries that stand in it, as the answer names them.
    #[serde(default)]
    pub trusted: Vec<String>,
}

/// A statement that did not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub sql: String,
    /// `guard`, `review` or `database`.
    pub by: String,
    /// In its own words.
    pub error: String,
}

/// What a statement yielded, as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    pub truncated: bool,
    pub elapsed_ms: Option<u64>,
    /// How many times a row is counted, where a join multiplies it.
    pub factor: Option<f64>,
    /// How up to date the tables are, in words.
    #[serde(default)]
    pub freshness: Vec<String>,
    /// The numbers of the answer and where they come from.
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
